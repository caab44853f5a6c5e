// SVG path data in whole numbers, short.

#ifndef WEIR_SIM_REPORT_PATH_H_
#define WEIR_SIM_REPORT_PATH_H_

#include <string>

namespace weir::sim_report {

class Path {
 public:
  // Begins a new stroke.
  void Move(int x, int y);
  // Goes on from where it is.
  void Line(int x, int y);
  // Closes the stroke to an area.
  void Close();

  // The value of a `d` attribute.
  std::string Take();

 private:
  void Flush();

  std::string data_;
  char command_ = 0;  // That further numbers would continue.
  int x_ = 0;         // Where the written data end.
  int y_ = 0;
  int dx_ = 0;  // The step after that, not written yet: it may get longer.
  int dy_ = 0;
};

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_PATH_H_
