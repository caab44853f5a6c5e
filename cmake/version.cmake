# Writes OUT (a .cc file) with the version and the commit it was built from.
# Run at build time, so that the commit is the one that is built and not the
# one that was configured; the file changes only when its content does.
#
#   cmake -DSOURCE=dir -DVERSION=0.1.0 -DOUT=file -P cmake/version.cmake

set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(
    COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit)
  set(commit " (${commit})")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "version.h"

namespace weir::cli {
const char* const kVersion = "weir @VERSION@@commit@";
}  // namespace weir::cli
]] @ONLY)
