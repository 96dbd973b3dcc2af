// Drives the engine's kernels, without torch, over many small random problems, for the address and undefined
// behaviour sanitizers to watch: every buffer is on the heap, exactly as large as it must be. Checked here:
// every element of a result is written and nothing beside it, padding is not read, and the tiling and the
// order of the tiles do not change a bit. See `make sanitize`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels.h"
#include "numbers.h"

#if defined(LRN_X86) && !defined(LRN_AVX512)
namespace lrn::avx512 {  // left out of the build by default: few machines run it, and it takes a minute
const std::vector<Kernels>& kernels() {
  static const std::vector<Kernels> none;
  return none;
}
}  // namespace lrn::avx512
#endif

namespace {

using lrn::Grid;
using lrn::Problem;
using lrn::Type;

std::mt19937_64 source(20190527);
int64_t draw(int64_t low, int64_t high) { return low + int64_t(source() % uint64_t(high - low + 1)); }
bool coin(int percent = 50) { return draw(1, 100) <= percent; }

struct Format {
  Type type;
  size_t bytes;
  uint64_t nan;  // the pattern that unwritten elements carry
};
const Format kFormats[] = {{Type::f32, 4, 0x7fc01234}, {Type::f64, 8, 0x7ff8000012345678},
                           {Type::bf16, 2, 0x7fc5}, {Type::f16, 2, 0x7e45}};

// A small number in any format.
uint64_t number(const Format& format) {
  const double value = double(draw(-2000, 2000)) / 1000;
  const float single = float(value);
  const uint32_t bits = lrn::bits_of<uint32_t>(single);
  switch (format.type) {
    case Type::f64: return lrn::bits_of<uint64_t>(value);
    case Type::bf16: return bits >> 16;
    case Type::f16: return uint64_t(draw(0x2000, 0x3fff) | (coin() ? 0x8000 : 0));  // 0.008 to 2
    default: return bits;
  }
}

// A strided tensor in a buffer that ends with its last element.
class Array {
 public:
  std::vector<int64_t> sizes, strides;
  int64_t length = 0;
  std::unique_ptr<uint8_t[]> buffer;

  // `order`: dimensions from the outermost to the innermost; the last one is always adjacent.
  Array(const Format& format, std::vector<int64_t> shape, std::vector<int> order, bool gaps)
      : sizes(shape), strides(shape.size()), format_(format) {
    int64_t step = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      strides[*d] = step;
      step = step * std::max<int64_t>(1, sizes[*d]) + (gaps ? draw(0, 3) : 0);
    }
    allocate();
  }
  Array(Array&&) = default;

  // The same layout with nothing written yet.
  Array blank() const {
    Array array(*this, 0);
    array.allocate();
    return array;
  }
  // See one slice over and over; for what is only read.
  void expand(int dimension) {
    strides[dimension] = 0;
    allocate();
  }
  void allocate() {
    length = 1;
    for (size_t d = 0; d < sizes.size(); ++d) length += (sizes[d] - 1) * strides[d];
    if (std::count(sizes.begin(), sizes.end(), 0)) length = 0;
    buffer.reset(new uint8_t[length * format_.bytes]);
    for (int64_t i = 0; i < length; ++i) put(i, format_.nan);
  }

  void put(int64_t i, uint64_t bits) { std::memcpy(&buffer[i * format_.bytes], &bits, format_.bytes); }
  uint64_t get(int64_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &buffer[i * format_.bytes], format_.bytes);
    return bits;
  }
  int64_t offset(const std::vector<int64_t>& index) const {
    return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
  }
  template <class Visit>
  void each(const Visit& visit) const {
    std::vector<int64_t> index(sizes.size(), 0);
    if (length == 0) return;
    for (;;) {
      visit(index);
      size_t d = 0;
      while (d < index.size() && ++index[d] == sizes[d]) index[d++] = 0;
      if (d == index.size()) return;
    }
  }
  void fill() {
    each([&](const auto& index) { put(offset(index), number(format_)); });
  }
  bool same(const Array& other) const {
    return length == other.length && std::memcmp(buffer.get(), other.buffer.get(), length * format_.bytes) == 0;
  }
  // All elements written with numbers, all gaps left alone.
  void check_written(const char* name) const;

 private:
  Format format_;
  Array(const Array& like, int) : sizes(like.sizes), strides(like.strides), format_(like.format_) {}
};

std::string now;  // the problem at hand, for messages

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n  %s\n", what.c_str(), now.c_str());
  std::exit(1);
}

bool is_nan(uint64_t bits, Type type) {
  switch (type) {
    case Type::f64: return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case Type::bf16: return (bits & 0x7fff) > 0x7f80;
    case Type::f16: return (bits & 0x7fff) > 0x7c00;
    default: return (bits & 0x7fffffff) > 0x7f800000;
  }
}

void Array::check_written(const char* name) const {
  std::vector<bool> element(length, false);
  each([&](const auto& index) { element[offset(index)] = true; });
  for (int64_t i = 0; i < length; ++i) {
    if (element[i] && is_nan(get(i), format_.type)) fail(std::string(name) + ": not a number at " + std::to_string(i));
    if (!element[i] && get(i) != format_.nan) fail(std::string(name) + ": a gap was written at " + std::to_string(i));
  }
}

// One random problem: its arrays, and Problems that point into them.
class Case {
 public:
  Case(const lrn::Kernels& kernels, const Format& format) : kernels_(kernels), format_(format) {
    steps_ = coin(5) ? 0 : draw(1, 6);
    batch_ = coin(5) ? 0 : coin(15) ? draw(16, 40) : draw(1, 9);
    hidden_ = coin(2) ? 1030 : coin(6) ? draw(127, 129) : draw(1, 40);
    if (hidden_ == 1030) batch_ = std::min<int64_t>(batch_, 3);
    directions_ = coin() ? 2 : 1;
    reverse_ = directions_ == 1 && coin();
    packed_ = batch_ > 0 && steps_ > 0 && coin(30);
    batch_first_ = !packed_ && coin();
    lengths_.assign(batch_, steps_);
    if (packed_ || coin()) {
      has_lengths_ = true;
      for (int64_t& length : lengths_) length = draw(packed_ ? 1 : 0, steps_);
      if (packed_) std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
      if (packed_) lengths_[0] = steps_;
    }
    for (int64_t t = 0; packed_ && t < steps_; ++t) {
      first_row_.push_back(rows_);
      rows_ += std::count_if(lengths_.begin(), lengths_.end(), [&](int64_t n) { return n > t; });
    }
    const int64_t parts = kernels.parts, planes = std::max(1, kernels.vectors);
    now = std::string(kernels.cell) + " type " + std::to_string(int(format.type)) + " T " + std::to_string(steps_) +
          " B " + std::to_string(batch_) + " H " + std::to_string(hidden_) + " D " + std::to_string(directions_) +
          (reverse_ ? " reverse" : "") + (packed_ ? " packed" : has_lengths_ ? " lengths" : "") +
          (batch_first_ ? " batch first" : "");

    x_.push_back(tokens({directions_, kernels.gates, hidden_}, coin(), coin(15)));
    grad_x_.push_back(tokens({directions_, kernels.gates, hidden_}, coin()));
    state_.push_back(plain({parts, directions_, batch_, hidden_}, coin()));
    weight_.push_back(plain({batch_, directions_, planes, hidden_}, coin()));
    if (coin()) weight_[0].expand(0);
    grad_output_.push_back(tokens({directions_ * hidden_}, coin(), coin(15)));
    grad_final_.push_back(plain({parts, directions_, batch_, hidden_}, coin()));
    for (Array* array : {&x_[0], &state_[0], &weight_[0], &grad_output_[0], &grad_final_[0]}) array->fill();
    poison_padding(x_[0]);
    poison_padding(grad_output_[0]);
    with_output_ = coin(75);
    with_final_ = !with_output_ || coin(75);
    if (coin()) {
      reset_.reset(new bool[std::max<int64_t>(1, packed_ ? rows_ : steps_ * batch_)]);
      for (int64_t i = 0; i < (packed_ ? rows_ : steps_ * batch_); ++i) reset_[i] = coin(30);
    }
  }

  void run() {
    std::vector<std::vector<Array>> all;
    for (const int64_t threads : {int64_t{1}, draw(2, 8), int64_t{64}}) {
      all.push_back(results(threads));
      for (size_t i = 0; i < all[0].size(); ++i) {
        if (!all.back()[i].same(all[0][i])) {
          fail(std::string(kNames[i]) + ": other bits for " + std::to_string(threads) + " threads than for one");
        }
      }
    }
  }

 private:
  static constexpr const char* kNames[] = {"output", "memory", "final", "grad_x", "grad_state", "grad_weight"};
  const lrn::Kernels& kernels_;
  Format format_;
  int64_t steps_, batch_, hidden_, directions_, rows_ = 0;
  bool reverse_, packed_, batch_first_, has_lengths_ = false, with_output_, with_final_;
  std::vector<int64_t> lengths_, first_row_;
  std::vector<Array> x_, grad_x_, state_, weight_, grad_output_, grad_final_;  // one each
  std::unique_ptr<bool[]> reset_;

  Array plain(std::vector<int64_t> shape, bool gaps) const {
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    return {format_, shape, order, gaps};
  }
  // A tensor with a row per token: [rows, ...] or [T, B, ...] ([B, T, ...] in memory where batch first).
  Array tokens(std::vector<int64_t> rest, bool gaps, bool expanded = false) const {
    std::vector<int64_t> shape = packed_ ? std::vector{rows_} : std::vector{steps_, batch_};
    shape.insert(shape.end(), rest.begin(), rest.end());
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (batch_first_) std::swap(order[0], order[1]);
    Array array(format_, shape, order, gaps);
    if (expanded) array.expand(0);
    return array;
  }
  bool real(int64_t t, int64_t b) const { return t < lengths_[b]; }
  void poison_padding(Array& array) const {
    if (packed_ || array.strides[0] == 0) return;
    array.each([&](const auto& index) {
      if (!real(index[0], index[1])) array.put(array.offset(index), format_.nan);
    });
  }

  Grid row_grid(const Array& array) const {
    Grid grid{array.buffer.get()};
    grid.time = packed_ ? 0 : array.strides[0];
    grid.batch = array.strides[packed_ ? 0 : 1];
    const size_t rows = packed_ ? 1 : 2;
    grid.direction = array.strides.size() == rows + 1 ? hidden_ : array.strides[rows];
    grid.plane = array.strides.size() == rows + 1 ? 0 : array.strides[rows + 1];
    return grid;
  }
  static Grid state_grid(const Array& array) {
    return {array.buffer.get(), 0, array.strides[2], array.strides[1], array.strides[0]};
  }
  static Grid weight_grid(const Array& array) {
    return {array.buffer.get(), 0, array.strides[0], array.strides[1], array.strides[2]};
  }

  Problem problem(int64_t threads) const {
    Problem p;
    p.steps = steps_, p.batch = batch_, p.directions = directions_, p.hidden = hidden_;
    p.reverse[0] = reverse_, p.reverse[1] = true;
    p.lengths = has_lengths_ ? lengths_.data() : nullptr;
    p.first_row = packed_ ? first_row_.data() : nullptr;
    if (reset_) {
      p.reset = {reset_.get(), packed_ ? 0 : batch_first_ ? 1 : batch_, packed_ ? 1 : batch_first_ ? steps_ : 1};
    }
    p.x = row_grid(x_[0]);
    p.state = state_grid(state_[0]);
    if (kernels_.vectors > 0) p.weight = weight_grid(weight_[0]);
    p.plan(threads);
    return p;
  }
  // Tiles in pieces and out of order, as threads would run them.
  static void run_tiles(lrn::Kernel kernel, const Problem& p) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int64_t first = 0; first < p.tiles();) {
      const int64_t last = std::min(p.tiles(), first + draw(1, 5));
      pieces.emplace_back(first, last);
      first = last;
    }
    std::shuffle(pieces.begin(), pieces.end(), source);
    for (const auto& [first, last] : pieces) kernel(p, first, last);
  }

  std::vector<Array> results(int64_t threads) const {
    const bool own_memory = kernels_.parts == 2;
    const std::vector<int64_t> wide{directions_ * hidden_}, like_state{kernels_.parts, directions_, batch_, hidden_};
    Array output = tokens(wide, false), memory = tokens(wide, false), final = plain(like_state, false);
    Problem p = problem(threads);
    p.output = row_grid(output);
    p.final = state_grid(final);
    if (own_memory) p.memory = row_grid(memory);
    run_tiles(kernels_.forward, p);
    output.check_written("output");
    final.check_written("final");
    if (own_memory) memory.check_written("memory");

    Array grad_x = grad_x_[0].blank(), grad_state = plain(like_state, false),
          grad_weight = plain({batch_, directions_, std::max(1, kernels_.vectors), hidden_}, false);
    Problem q = problem(threads);
    q.output = q.memory = row_grid(own_memory ? memory : output);
    if (with_output_) q.grad_output = row_grid(grad_output_[0]);
    if (with_final_) q.grad_final = state_grid(grad_final_[0]);
    q.grad_x = row_grid(grad_x);
    q.grad_state = state_grid(grad_state);
    if (kernels_.vectors > 0) q.grad_weight = weight_grid(grad_weight);
    run_tiles(kernels_.backward, q);
    grad_x.check_written("grad_x");
    grad_state.check_written("grad_state");
    if (kernels_.vectors > 0) grad_weight.check_written("grad_weight");

    std::vector<Array> all;
    for (Array* array : {&output, &memory, &final, &grad_x, &grad_state, &grad_weight}) {
      all.push_back(std::move(*array));
    }
    return all;
  }
};

}  // namespace

int main(int count, char** arguments) {
  const int problems = count > 1 ? std::atoi(arguments[1]) : 2000;
  for (const lrn::InstructionSet& set : lrn::instruction_sets()) {
    if (set.kernels->empty()) continue;
    for (int i = 0; i < problems; ++i) {
      const Format& format = kFormats[i % 4];
      const auto cells = set.kernels->size() / 4;
      const lrn::Kernels& any = (*set.kernels)[i / 4 % cells * 4];
      Case(*lrn::find_kernels(set, any.cell, format.type), format).run();
    }
    std::printf("%s: %d problems, ok\n", std::string(set.name).c_str(), problems);
  }
}
