#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace qpn8 {

/// A row-major matrix in somebody else's memory, which must outlive the view. `stride` is the distance of two rows in
/// elements: at least `cols`, or 0 for one row many times.
///
/// Like std::span it is a plain value: nothing is checked (an index or a range outside the matrix is undefined),
/// nothing throws, and threads may share it as they may share what it shows.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  MatrixView() = default;
  MatrixView(T* data_, std::int64_t rows_, std::int64_t cols_) : MatrixView(data_, rows_, cols_, cols_) {}
  MatrixView(T* data_, std::int64_t rows_, std::int64_t cols_, std::int64_t stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}

  std::span<T> row(std::int64_t i) const { return {data + i * stride, static_cast<std::size_t>(cols)}; }
  MatrixView row_range(std::int64_t first, std::int64_t count) const {
    return {data + first * stride, count, cols, stride};
  }
  MatrixView col_range(std::int64_t first, std::int64_t count) const { return {data + first, rows, count, stride}; }
  operator MatrixView<const T>() const { return {data, rows, cols, stride}; }
};

/// A row-major matrix that owns its memory, zero-initialised. Sizes are at least 0; std::bad_alloc or std::length_error
/// if there is no such memory, and no index is checked. Threads may read it together, and write different elements.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols)) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  T& operator()(std::int64_t i, std::int64_t j) { return values_[static_cast<std::size_t>(i * cols_ + j)]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return values_[static_cast<std::size_t>(i * cols_ + j)]; }
  std::span<T> values() { return values_; }
  std::span<const T> values() const { return values_; }
  MatrixView<T> view() { return {values_.data(), rows_, cols_}; }
  MatrixView<const T> view() const { return {values_.data(), rows_, cols_}; }

 private:
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::vector<T> values_;
};

}  // namespace qpn8
