#include "path.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace weir::sim_report {
namespace {

// A minus sign separates as well as a space does.
void AddNumber(std::string& data, int number, bool first) {
  if (!first && number >= 0) data += ' ';
  data += std::to_string(number);
}

}  // namespace

void Path::Move(int x, int y) {
  Flush();
  data_ += 'M';
  AddNumber(data_, x, true);
  AddNumber(data_, y, false);
  command_ = 'M';
  x_ = x;
  y_ = y;
}

void Path::Line(int x, int y) {
  const int dx = x - x_ - dx_;
  const int dy = y - y_ - dy_;
  if (dx == 0 && dy == 0) return;
  const bool same_way = int64_t{dx} * dy_ == int64_t{dy} * dx_ &&
                        int64_t{dx} * dx_ + int64_t{dy} * dy_ > 0;
  if (!same_way) Flush();
  dx_ += dx;
  dy_ += dy;
}

void Path::Close() {
  Flush();
  data_ += 'z';
  command_ = 'z';
}

std::string Path::Take() {
  Flush();
  command_ = 0;
  return std::exchange(data_, {});
}

void Path::Flush() {
  if (dx_ == 0 && dy_ == 0) return;
  const char command = dy_ == 0 ? 'h' : dx_ == 0 ? 'v' : 'l';
  const bool goes_on = command == command_;
  if (!goes_on) data_ += command;
  if (command != 'v') AddNumber(data_, dx_, !goes_on);
  if (command != 'h') AddNumber(data_, dy_, command == 'v' && !goes_on);
  command_ = command;
  x_ += std::exchange(dx_, 0);
  y_ += std::exchange(dy_, 0);
}

}  // namespace weir::sim_report
