// A small matrix product: rows times a square matrix, while both stay in the cache.
//
// A general product, called at every step, would hand each of them to all threads and wait for the
// slowest. This one runs inside a thread, reads and writes rows wherever they are, and sums every element
// in the same order whatever rows are beside it: results do not depend on how rows are dealt to threads.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "numbers.h"

namespace lrn {

// The rows of one product: out = start + in * matrix. `start` may be `out`.
template <class Number>
struct ProductRows {
  std::vector<const Number*> in, start;
  std::vector<Number*> out;

  int64_t size() const { return in.size(); }
  void clear() { in.clear(), start.clear(), out.clear(); }
  void add(const Number* in_row, const Number* start_row, Number* out_row) {
    in.push_back(in_row), start.push_back(start_row), out.push_back(out_row);
  }
};

// The matrix as the product reads it: in panels two vectors wide, each going down all inputs. The last
// one is filled up with zeros.
template <class T>
class Panels {
 public:
  using Number = Lane<T>;
  static constexpr int64_t width = 2 * kLanes<T>;

  explicit Panels(int64_t size)
      : size(size), room_(std::make_unique_for_overwrite<Number[]>(count() * size * width + line / sizeof(Number))) {
    const size_t beyond = reinterpret_cast<uintptr_t>(room_.get()) % line;
    data_ = room_.get() + (line - beyond) % line / sizeof(Number);
  }

  const int64_t size;
  int64_t count() const { return (size + width - 1) / width; }
  int64_t columns(int64_t panel) const { return std::min(width, size - panel * width); }
  LRN_INLINE const Number* at(int64_t panel, int64_t input) const { return data_ + (panel * size + input) * width; }

  // Element (input, output) of the matrix is from[input * in + output * out].
  void fill(const Number* from, int64_t in, int64_t out) {
    constexpr int64_t block = 16;  // a cache line at a time, whichever way the matrix lies
    for (int64_t panel = 0; panel < count(); ++panel) {
      for (int64_t first = 0; first < size; first += block) {
        const int64_t last = std::min(first + block, size);
        for (int64_t c = 0; c < width; ++c) {
          const Number* column = c < columns(panel) ? from + (panel * width + c) * out : nullptr;
          for (int64_t i = first; i < last; ++i) data_[(panel * size + i) * width + c] = column ? column[i * in] : 0;
        }
      }
    }
  }

 private:
  static constexpr size_t line = 64;  // panels begin at a cache line
  std::unique_ptr<Number[]> room_;
  Number* data_;
};

// Some rows by some panels, the sums all in registers.
template <int rows, int panels, class T>
LRN_INLINE void multiply_block(const Panels<T>& matrix, int64_t panel, const ProductRows<Lane<T>>& product,
                               int64_t row) {
  constexpr int vectors = 2 * panels;
  const Lane<T>* in[rows];
  for (int r = 0; r < rows; ++r) in[r] = product.in[row + r];
  T sums[rows][vectors] = {};
  for (int64_t i = 0; i < matrix.size; ++i) {
    T weights[vectors];
    for (int v = 0; v < vectors; ++v) weights[v] = Memory<T>::load(matrix.at(panel + v / 2, i) + v % 2 * kLanes<T>);
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sums[r][v] += weights[v] * in[r][i];
    }
  }
  const int64_t first = panel * matrix.width, columns = matrix.columns(panel + panels - 1);
  for (int r = 0; r < rows; ++r) {
    const Lane<T>* start = product.start[row + r] + first;
    Lane<T>* out = product.out[row + r] + first;
    if (columns == matrix.width) {
      for (int v = 0; v < vectors; ++v) {
        const int64_t c = v * kLanes<T>;
        Memory<T>::store(out + c, Memory<T>::load(start + c) + sums[r][v]);
      }
    } else {  // the last panel, which is never one of several
      Lane<T> whole[matrix.width];
      for (int v = 0; v < 2; ++v) Memory<T>::store(whole + v * kLanes<T>, sums[r][v]);
      for (int64_t c = 0; c < columns; ++c) out[c] = start[c] + whole[c];
    }
  }
}

// multiply_block for a number of rows known only now.
template <int most, class T>
LRN_INLINE void multiply_rows(const Panels<T>& matrix, int64_t panel, const ProductRows<Lane<T>>& product,
                              int64_t row, int64_t rows) {
  if (rows == most) return multiply_block<most, 1>(matrix, panel, product, row);
  if constexpr (most > 1) multiply_rows<most - 1>(matrix, panel, product, row, rows);
}

// Several whole panels at once, for rows too few to keep the adders busy with one; returns how many are done.
template <int rows, int panels, class T>
LRN_INLINE int64_t multiply_wide(const Panels<T>& matrix, const ProductRows<Lane<T>>& product) {
  int64_t panel = 0;
  for (; (panel + panels) * matrix.width <= matrix.size; panel += panels) {
    multiply_block<rows, panels>(matrix, panel, product, 0);
  }
  return panel;
}

template <class T>
LRN_KERNEL void multiply(const Panels<T>& matrix, const ProductRows<Lane<T>>& product) {
  constexpr int most = 6;  // by two vectors: 12 of the 16 registers that every x86 has
  const int64_t rows = product.size(), blocks = (rows + most - 1) / most;
  int64_t panel = rows == 1   ? multiply_wide<1, 4>(matrix, product)
                  : rows == 2 ? multiply_wide<2, 2>(matrix, product)
                  : rows == 3 ? multiply_wide<3, 2>(matrix, product)
                              : 0;
  for (; panel < matrix.count(); ++panel) {
    for (int64_t block = 0; block < blocks; ++block) {  // of even size: a single row would be slow
      const int64_t first = rows * block / blocks, last = rows * (block + 1) / blocks;
      multiply_rows<most>(matrix, panel, product, first, last - first);
    }
  }
}

}  // namespace lrn
