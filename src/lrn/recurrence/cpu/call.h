// What every op does with its arguments: checks them, and says where in memory the kernels find things.
// Torch's stable ABI only.
#pragma once

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kernels.h"

namespace lrn {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The fastest set that runs here; the environment variable LRN_CPU asks for another, for tests.
inline const InstructionSet& instruction_set() {
  static const InstructionSet chosen = [] {
    const std::vector<InstructionSet> sets = instruction_sets();
    const char* wanted = std::getenv("LRN_CPU");
    for (const InstructionSet& set : sets) {
      if (wanted && set.name == wanted) return set;
    }
    STD_TORCH_CHECK(!wanted || !*wanted, "environment variable LRN_CPU: this processor does not run '", wanted, "'");
    return sets.front();
  }();
  return chosen;
}

inline Type type_of(const Tensor& x) {
  switch (x.scalar_type()) {
    case ScalarType::Float: return Type::f32;
    case ScalarType::Double: return Type::f64;
    case ScalarType::BFloat16: return Type::bf16;
    case ScalarType::Half: return Type::f16;
    default: break;
  }
  STD_TORCH_CHECK(false, "lrn: tensors must be float32, float64, bfloat16 or float16");
}

// A copy only where neighbouring features are not neighbours in memory.
inline Tensor with_adjacent_features(const Tensor& x) {
  const int64_t last = x.dim() - 1;
  return last >= 0 && x.size(last) > 1 && x.stride(last) != 1 ? torch::stable::contiguous(x) : x;
}

// Where the rows of a call lie: padded, with or without lengths, or packed.
class Layout {
 public:
  Problem problem;

  Layout(const OptionalTensor& batch_sizes, bool batch_first)
      : packed_(batch_sizes.has_value()), batch_first_(batch_first) {}

  int64_t rows() const { return packed_ ? 1 : 2; }  // leading dimensions

  void read_direction(const std::string& direction) {
    STD_TORCH_CHECK(direction == "forward" || direction == "reverse" || direction == "both",
                    "lrn: direction must be forward, reverse or both, got '", direction, "'");
    problem.directions = direction == "both" ? 2 : 1;
    problem.reverse[0] = direction == "reverse";
    problem.reverse[1] = true;
  }

  // The batch is known; the steps are those of x, whose leading dimensions are the rows.
  void read_rows(const Tensor& x, const OptionalTensor& lengths, const OptionalTensor& batch_sizes) {
    if (packed_) {
      read_packing(*batch_sizes, x.size(0));
      STD_TORCH_CHECK(!lengths.has_value(), "lrn: lengths and batch_sizes exclude each other");
    } else {
      problem.steps = x.size(batch_first_ ? 1 : 0);
      STD_TORCH_CHECK(x.size(batch_first_ ? 0 : 1) == problem.batch, "lrn: state has another batch size than x");
      if (lengths.has_value()) read_lengths(*lengths);
    }
  }

  // A tensor with a row per token: where rows begin.
  Grid rows_of(const Tensor& x) const {
    Grid grid{x.data_ptr()};
    grid.batch = x.stride(packed_ || batch_first_ ? 0 : 1);
    grid.time = packed_ ? 0 : x.stride(batch_first_ ? 1 : 0);
    return grid;
  }

  void read_reset(const Tensor& reset, const Tensor& x) {
    STD_TORCH_CHECK(reset.scalar_type() == ScalarType::Bool && reset.dim() == rows(), "lrn: reset must be bool");
    for (int64_t d = 0; d < rows(); ++d) {
      STD_TORCH_CHECK(reset.size(d) == x.size(d), "lrn: reset must have x's leading dimensions");
    }
    problem.reset = rows_of(reset);
  }

 protected:
  bool packed_, batch_first_;

 private:
  std::vector<int64_t> lengths_, first_row_;

  static const int64_t* whole_numbers(const Tensor& x, const char* name) {
    STD_TORCH_CHECK(x.scalar_type() == ScalarType::Long && x.dim() == 1 && x.is_cpu(), "lrn: ", name,
                    " must be int64, of one dimension, on the CPU");
    return static_cast<const int64_t*>(x.data_ptr());
  }

  void read_lengths(const Tensor& lengths) {
    const int64_t* data = whole_numbers(lengths, "lengths");
    STD_TORCH_CHECK(lengths.size(0) == problem.batch, "lrn: lengths must have one entry a row");
    lengths_.resize(problem.batch);
    for (int64_t b = 0; b < problem.batch; ++b) {
      lengths_[b] = data[b * lengths.stride(0)];
      STD_TORCH_CHECK(lengths_[b] >= 0 && lengths_[b] <= problem.steps, "lrn: lengths must be from 0 to ",
                      problem.steps, ", got ", lengths_[b]);
    }
    problem.lengths = lengths_.data();
  }

  void read_packing(const Tensor& batch_sizes, int64_t total) {
    const int64_t* data = whole_numbers(batch_sizes, "batch_sizes");
    problem.steps = batch_sizes.size(0);
    first_row_.resize(problem.steps);
    lengths_.assign(problem.batch, 0);
    int64_t row = 0, before = problem.batch;
    for (int64_t t = 0; t < problem.steps; ++t) {
      const int64_t size = data[t * batch_sizes.stride(0)];
      STD_TORCH_CHECK(size > 0 && size <= before, "lrn: batch_sizes must be positive and not increase");
      first_row_[t] = row;
      row += size;
      for (int64_t b = size; b < before; ++b) lengths_[b] = t;
      before = size;
    }
    for (int64_t b = 0; b < before; ++b) lengths_[b] = problem.steps;
    STD_TORCH_CHECK(row == total, "lrn: batch_sizes add up to ", row, ", x has ", total, " rows");
    problem.lengths = lengths_.data();
    problem.first_row = first_row_.data();
  }
};

// One call: its sizes, checked, and everything the kernels need that a tensor does not hold.
class Call : public Layout {
 public:
  const Kernels* kernels;

  Call(const Tensor& x, const Tensor& state, const OptionalTensor& weight, const OptionalTensor& lengths,
       const OptionalTensor& batch_sizes, const OptionalTensor& reset, const std::string& cell,
       const std::string& direction, bool batch_first, bool matrix = false)
      : Layout(batch_sizes, batch_first),
        kernels(find_kernels(instruction_set(), cell, type_of(x))),
        x_(with_adjacent_features(x)),
        state_(with_adjacent_features(state)) {
    STD_TORCH_CHECK(kernels != nullptr && kernels->matrix == matrix, "lrn: there is no cell '", cell, "'");
    read_direction(direction);
    Problem& p = problem;
    const int64_t rows = this->rows();
    STD_TORCH_CHECK(x.dim() == rows + 3, "lrn: x must have ", rows + 3, " dimensions, got ", x.dim());
    STD_TORCH_CHECK(state.dim() == 4, "lrn: state must have 4 dimensions, got ", state.dim());
    p.hidden = x.size(rows + 2);
    p.batch = state.size(2);
    STD_TORCH_CHECK(x.size(rows) == p.directions && x.size(rows + 1) == kernels->gates,
                    "lrn: x does not fit ", cell, ", ", direction);
    STD_TORCH_CHECK(state.size(0) == kernels->parts && state.size(1) == p.directions && state.size(3) == p.hidden,
                    "lrn: state does not fit x");
    check_type(state, x, "state");

    read_rows(x, lengths, batch_sizes);
    p.x = x_of(x_);
    p.state = state_of(state_);
    if (kernels->vectors > 0) {
      STD_TORCH_CHECK(weight.has_value() && weight->dim() == 4 && weight->size(0) == p.batch &&
                          weight->size(1) == p.directions && weight->size(2) == kernels->vectors &&
                          weight->size(3) == p.hidden,
                      "lrn: ", cell, " needs weight [B, D, ", kernels->vectors, ", H]");
      check_type(*weight, x, "weight");
      weight_ = with_adjacent_features(*weight);
      p.weight = weight_of(weight_);
    } else {
      STD_TORCH_CHECK(!weight.has_value(), "lrn: ", cell, " has no vectors, weight must be None");
    }
    if (reset.has_value()) read_reset(*reset, x);
    const int64_t threads = torch::stable::get_num_threads();
    if (matrix) {
      p.plan_whole_rows(threads);
    } else {
      p.plan(threads);
    }
  }

  Grid x_of(const Tensor& x) const {
    Grid grid = rows_of(x);
    grid.direction = x.stride(x.dim() - 3);
    grid.plane = x.stride(x.dim() - 2);
    return grid;
  }
  Grid output_of(const Tensor& x) const {
    Grid grid = rows_of(x);
    grid.direction = problem.hidden;
    return grid;
  }
  static Grid state_of(const Tensor& x) { return {x.data_ptr(), 0, x.stride(2), x.stride(1), x.stride(0)}; }
  static Grid weight_of(const Tensor& x) { return {x.data_ptr(), 0, x.stride(0), x.stride(1), x.stride(2)}; }

  static void check_type(const Tensor& x, const Tensor& like, const char* name) {
    STD_TORCH_CHECK(x.scalar_type() == like.scalar_type() && x.is_cpu(), "lrn: ", name,
                    " must be on the CPU and of x's type");
  }
  void check_output(const Tensor& x, const Tensor& like, const char* name) const {
    const int64_t rows = this->rows();
    bool fits = x.dim() == rows + 1 && x.size(rows) == problem.directions * problem.hidden;
    for (int64_t d = 0; fits && d < rows; ++d) fits = x.size(d) == like.size(d);
    STD_TORCH_CHECK(fits, "lrn: ", name, " does not fit x");
    check_type(x, like, name);
  }
  // An output that somebody else made: the kernels write whole rows of adjacent features, each row only once.
  void check_written(const Tensor& x, const Tensor& like, const char* name) const {
    check_output(x, like, name);
    const int64_t rows = this->rows();
    const bool swapped = !packed_ && x.stride(0) < x.stride(1);
    int64_t taken = x.size(rows);  // elements from the first of a row, or of a run of rows, to behind its last
    bool good = taken <= 1 || x.stride(rows) == 1;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t d = swapped ? i : rows - 1 - i;  // the shorter stride first
      if (x.size(d) <= 1) continue;
      good = good && x.stride(d) >= taken;
      taken = x.stride(d) * x.size(d);
    }
    STD_TORCH_CHECK(good, "lrn: ", name, " must have adjacent features and rows of their own in memory");
  }
  void check_state(const Tensor& x, const Tensor& like, const char* name) const {
    bool fits = x.dim() == 4;
    for (int64_t d = 0; fits && d < 4; ++d) fits = x.size(d) == like.size(d);
    STD_TORCH_CHECK(fits, "lrn: ", name, " does not fit state");
    check_type(x, like, name);
  }

  // Results, still empty.
  Tensor new_output(const Tensor& x) const {
    std::vector<int64_t> shape{x.size(0)};
    if (!packed_) shape.push_back(x.size(1));
    shape.push_back(problem.directions * problem.hidden);
    return torch::stable::new_empty(x, shape);
  }
  static Tensor new_state(const Tensor& state) {
    return torch::stable::new_empty(
        state, std::vector<int64_t>{state.size(0), state.size(1), state.size(2), state.size(3)});
  }
  static Tensor new_nothing(const Tensor& x) { return torch::stable::new_empty(x, std::vector<int64_t>{0}); }

  // The gradients that a backward pass is given, either of which may be missing.
  void read_gradients(const OptionalTensor& grad_output, const OptionalTensor& grad_final, const Tensor& x,
                      const Tensor& state) {
    if (grad_output.has_value()) {
      check_output(*grad_output, x, "grad_output");
      grad_output_ = with_adjacent_features(*grad_output);
      problem.grad_output = output_of(grad_output_);
    }
    if (grad_final.has_value()) {
      check_state(*grad_final, state, "grad_final");
      grad_final_ = with_adjacent_features(*grad_final);
      problem.grad_final = state_of(grad_final_);
    }
  }
  // The gradients of x and state, to be written. That of x keeps its strides: a transposed x stays one.
  std::tuple<Tensor, Tensor> write_gradients(const Tensor& x, const Tensor& state) {
    Tensor grad_x = torch::stable::empty_like(x), grad_state = new_state(state);
    if (problem.hidden > 1 && grad_x.stride(x.dim() - 1) != 1) grad_x = torch::stable::contiguous(grad_x);
    problem.grad_x = x_of(grad_x);
    problem.grad_state = state_of(grad_state);
    return {grad_x, grad_state};
  }

  void run(Kernel kernel) const {
    const int64_t tiles = problem.tiles();
    const int64_t work = problem.steps * problem.batch * problem.directions * problem.hidden;
    const int64_t grain = work < kWorthAThread ? std::max<int64_t>(1, tiles) : 1;
    torch::stable::parallel_for(0, tiles, grain, [&](int64_t first, int64_t last) { kernel(problem, first, last); });
  }

 private:
  static constexpr int64_t kWorthAThread = 8192;  // elements; below, waking a thread costs more

  Tensor x_, state_, weight_, grad_output_, grad_final_;
};

}  // namespace lrn
