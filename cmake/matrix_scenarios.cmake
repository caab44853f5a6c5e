# Writes OUT (a .cc file) with the text of all S*.toml in DIR.
#
#   cmake -DDIR=sim/scenarios -DOUT=file -P cmake/matrix_scenarios.cmake

file(GLOB files RELATIVE ${DIR} ${DIR}/S*.toml)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  file(READ ${DIR}/${file} text)
  string(APPEND entries "    {\"${file}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"matrix_scenarios.h\"

namespace weir::cli {
namespace {

constexpr ScenarioText kScenarios[] = {
${entries}};

}  // namespace

std::span<const ScenarioText> MatrixScenarios() { return kScenarios; }

}  // namespace weir::cli
")
