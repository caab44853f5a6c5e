# What a module of the distribution's nginx is compiled against.
#
# nginx-dev has nginx's headers and its configure script, but not the two
# headers which that script makes: they are made here, once, and kept in
# build/nginx-objs for all presets.  Sets NGINX_INCLUDE_DIRS.

set(NGINX_SOURCE /usr/share/nginx/src CACHE PATH "nginx's sources, as of nginx-dev")
set(NGINX_OBJS ${PROJECT_SOURCE_DIR}/build/nginx-objs
    CACHE PATH "Where nginx's configure script leaves its headers")

if(NOT EXISTS ${NGINX_SOURCE}/conf_flags)
  message(FATAL_ERROR
    "no ${NGINX_SOURCE}/conf_flags\n"
    "  why: the nginx module is compiled against nginx-dev\n"
    "  fix: apt-get install nginx nginx-dev, or configure with -D WEIR_PROGRAMS=OFF")
endif()

# The script's outcome depends on nginx's version and flags; the stamp has both.
file(READ ${NGINX_SOURCE}/conf_flags nginx_stamp)
file(STRINGS ${NGINX_SOURCE}/src/core/nginx.h nginx_version REGEX "NGINX_VERSION ")
string(APPEND nginx_stamp "${nginx_version}\n")
set(nginx_stamped "")
if(EXISTS ${NGINX_OBJS}/stamp)
  file(READ ${NGINX_OBJS}/stamp nginx_stamped)
endif()
if(NOT nginx_stamped STREQUAL nginx_stamp)
  message(STATUS "Making nginx's headers in ${NGINX_OBJS}")
  file(REMOVE_RECURSE ${NGINX_OBJS})
  # It finds its parts from the working directory and writes below builddir.
  execute_process(
    COMMAND bash -c ". ./conf_flags && ./configure --builddir=$0 \"\${NGX_CONF_FLAGS[@]}\"" ${NGINX_OBJS}
    WORKING_DIRECTORY ${NGINX_SOURCE}
    OUTPUT_VARIABLE nginx_output ERROR_VARIABLE nginx_output RESULT_VARIABLE nginx_status)
  if(NOT nginx_status EQUAL 0)
    message(FATAL_ERROR "nginx's configure script failed:\n${nginx_output}")
  endif()
  file(WRITE ${NGINX_OBJS}/stamp "${nginx_stamp}")
endif()

set(NGINX_INCLUDE_DIRS ${NGINX_OBJS})
foreach(folder core event event/modules os/unix http http/modules http/v2)
  list(APPEND NGINX_INCLUDE_DIRS ${NGINX_SOURCE}/src/${folder})
endforeach()
