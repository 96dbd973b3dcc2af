// Drives the engine's kernels, without torch, over many small random problems, for the address and undefined
// behaviour sanitizers to watch: every buffer is on the heap, exactly as large as it must be. Checked here:
// every element of a result is written and nothing beside it, padding is not read, and the tiling and the
// order of the tiles do not change a bit. See `make sanitize`.
// The same for attention, whose gradients of the memory are added to.
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

#ifdef LRN_X86
namespace lrn::avx512 {  // stands in where those kernels are not linked, which few machines can run anyway
__attribute__((weak)) const std::vector<Kernels>& kernels() {
  static const std::vector<Kernels> none;
  return none;
}
__attribute__((weak)) const std::vector<AttentionKernels>& attention_kernels() {
  static const std::vector<AttentionKernels> none;
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
  Array& operator=(Array&&) = default;

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

struct Named {
  const char* name;
  Array array;
};

// One random problem: its arrays, and Problems that point into them.
class Case {
 public:
  Case(const lrn::Kernels& kernels, const Format& format) : kernels_(kernels), format_(format) {
    steps_ = coin(5) ? 0 : draw(1, 6);
    batch_ = coin(5) ? 0 : coin(15) ? draw(16, 40) : draw(1, 9);
    hidden_ = coin(2) && !kernels.matrix ? 1030 : coin(6) ? draw(127, 129) : draw(1, 40);
    if (hidden_ == 1030) batch_ = std::min<int64_t>(batch_, 3);
    directions_ = coin() ? 2 : 1;
    reverse_ = directions_ == 1 && coin();
    packed_ = batch_ > 0 && steps_ > 0 && coin(30);
    batch_first_ = !packed_ && coin();
    draw_lengths();
    now = std::string(kernels.cell) + ", type " + std::to_string(int(format.type)) + ", T " +
          std::to_string(steps_) + ", B " + std::to_string(batch_) + ", D " + std::to_string(directions_) + ", H " +
          std::to_string(hidden_) + (reverse_ ? ", reverse" : "") + (packed_ ? ", packed" : "") +
          (has_lengths_ ? ", lengths" : "") + (batch_first_ ? ", batch first" : "");

    add("x", tokens({directions_, kernels.gates, hidden_}, coin()), coin(15));
    add("state", plain(like_state(), coin()));
    add("grad_output", tokens({directions_ * hidden_}, coin()), coin(15));
    add("grad_final", plain(like_state(), coin()));
    if (kernels.vectors) add("weight", plain({batch_, directions_, kernels.vectors, hidden_}, coin()), coin());
    if (kernels.matrix) add("weight", plain({directions_, hidden_, hidden_}, coin(), coin()));
    if (kernels.matrix && coin()) add("bias", plain({directions_, hidden_}, coin()));
    poison_padding(*given("x"));
    poison_padding(*given("grad_output"));
    grad_x_.push_back(tokens({directions_, kernels.gates, hidden_}, coin()));
    with_output_ = coin(75);
    with_final_ = !with_output_ || coin(75);
    if (coin()) {
      const int64_t marks = packed_ ? rows_ : steps_ * batch_;
      reset_.reset(new bool[marks]);
      for (int64_t i = 0; i < marks; ++i) reset_[i] = coin(30);
    }
  }

  // Any number of threads, the same bits.
  void run() {
    const std::vector<Named> alone = results(1);
    for (const int64_t threads : {draw(2, 8), int64_t{64}}) {
      const std::vector<Named> shared = results(threads);
      for (size_t i = 0; i < alone.size(); ++i) {
        if (!shared[i].array.same(alone[i].array)) {
          fail(std::string(alone[i].name) + ": other bits for " + std::to_string(threads) + " threads than for one");
        }
      }
    }
  }

 private:
  const lrn::Kernels& kernels_;
  Format format_;
  int64_t steps_, batch_, hidden_, directions_, rows_ = 0;
  bool reverse_, packed_, batch_first_, has_lengths_ = false, with_output_, with_final_;
  std::vector<int64_t> lengths_, first_row_, first_token_;
  std::vector<Named> given_;
  std::vector<Array> grad_x_;  // its layout
  std::unique_ptr<bool[]> reset_;

  void draw_lengths() {
    has_lengths_ = packed_ || coin();
    lengths_.assign(batch_, steps_);
    for (int64_t& length : lengths_) length = has_lengths_ ? draw(packed_ ? 1 : 0, steps_) : steps_;
    if (packed_) lengths_[0] = steps_;
    if (packed_) std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
    for (int64_t t = 0; packed_ && t < steps_; ++t) {
      first_row_.push_back(rows_);
      rows_ += std::count_if(lengths_.begin(), lengths_.end(), [&](int64_t n) { return n > t; });
    }
    int64_t tokens = 0;
    for (const int64_t length : lengths_) first_token_.push_back(tokens), tokens += length;
    first_token_.push_back(tokens);
  }

  // Arrays that the kernels read.
  void add(const char* name, Array array, bool expanded = false) {
    if (expanded) array.expand(0);
    array.fill();
    given_.push_back({name, std::move(array)});
  }
  Array* given(const std::string& name) {
    for (Named& entry : given_) {
      if (entry.name == name) return &entry.array;
    }
    return nullptr;
  }
  void poison_padding(Array& array) const {
    if (packed_ || array.strides[0] == 0) return;
    array.each([&](const auto& index) {
      if (index[0] >= lengths_[index[1]]) array.put(array.offset(index), format_.nan);
    });
  }

  std::vector<int64_t> like_state() const { return {kernels_.parts, directions_, batch_, hidden_}; }
  Array plain(std::vector<int64_t> shape, bool gaps, bool transposed = false) const {
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (transposed) std::swap(order[1], order[2]);
    return {format_, shape, order, gaps};
  }
  // A tensor with a row per token: [rows, ...] or [T, B, ...] ([B, T, ...] in memory where batch first).
  Array tokens(std::vector<int64_t> rest, bool gaps) const {
    std::vector<int64_t> shape = packed_ ? std::vector{rows_} : std::vector{steps_, batch_};
    shape.insert(shape.end(), rest.begin(), rest.end());
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    if (batch_first_) std::swap(order[0], order[1]);
    return {format_, shape, order, gaps};
  }

  Grid row_grid(const Array& array) const {
    const size_t rows = packed_ ? 1 : 2;
    Grid grid{array.buffer.get()};
    grid.time = packed_ ? 0 : array.strides[0];
    grid.batch = array.strides[rows - 1];
    const bool flat = array.strides.size() == rows + 1;  // directions side by side
    grid.direction = flat ? hidden_ : array.strides[rows];
    grid.plane = flat ? 0 : array.strides[rows + 1];
    return grid;
  }
  static Grid state_grid(const Array& array) {
    return {array.buffer.get(), 0, array.strides[2], array.strides[1], array.strides[0]};
  }
  static Grid weight_grid(const Array& array) {
    return {array.buffer.get(), 0, array.strides[0], array.strides[1], array.strides[2]};
  }

  Problem problem(int64_t threads) {
    Problem p;
    p.steps = steps_, p.batch = batch_, p.directions = directions_, p.hidden = hidden_;
    p.reverse[0] = reverse_, p.reverse[1] = true;
    p.lengths = has_lengths_ ? lengths_.data() : nullptr;
    p.first_row = packed_ ? first_row_.data() : nullptr;
    if (reset_) {
      p.reset = {reset_.get(), packed_ ? 0 : batch_first_ ? 1 : batch_, packed_ ? 1 : batch_first_ ? steps_ : 1};
    }
    p.x = row_grid(*given("x"));
    p.state = state_grid(*given("state"));
    if (kernels_.matrix) {
      const Array &matrix = *given("weight"), *bias = given("bias");
      p.weight = {matrix.buffer.get(), 0, matrix.strides[1], matrix.strides[0], matrix.strides[2]};
      if (bias) p.bias = {bias->buffer.get(), 0, 0, bias->strides[0]};
      p.plan_whole_rows(threads);
    } else {
      if (kernels_.vectors) p.weight = weight_grid(*given("weight"));
      p.plan(threads);
    }
    return p;
  }
  // Tiles in pieces and out of order, as threads would run them.
  static void run_tiles(lrn::Kernel kernel, const Problem& p) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int64_t first = 0; first < p.tiles(); first = pieces.back().second) {
      pieces.emplace_back(first, std::min(p.tiles(), first + draw(1, 5)));
    }
    std::shuffle(pieces.begin(), pieces.end(), source);
    for (const auto& [first, last] : pieces) kernel(p, first, last);
  }

  // Forward, then backward, into arrays of their own.
  std::vector<Named> results(int64_t threads) {
    const std::vector<int64_t> wide{directions_ * hidden_};
    const bool own_memory = kernels_.parts == 2, kept = own_memory || kernels_.matrix;
    Array output = tokens(wide, false), second = tokens(kept ? wide : std::vector<int64_t>{0}, false),
          final = plain(like_state(), false);
    Problem p = problem(threads);
    p.output = row_grid(output);
    p.final = state_grid(final);
    if (own_memory) p.memory = row_grid(second);
    if (kernels_.matrix) p.q = row_grid(second);
    run_tiles(kernels_.forward, p);
    if (kernels_.matrix) {  // without q, for inference
      const Array trained = std::move(output);
      output = tokens(wide, false);
      p.output = row_grid(output), p.q = {};
      run_tiles(kernels_.forward, p);
      if (!output.same(trained)) fail("output: other bits where q is not kept");
    }

    Array grad_x = grad_x_[0].blank(), grad_state = plain(like_state(), false);
    const int64_t each = kernels_.matrix ? first_token_.back() : 0;
    Array grad_q = plain({directions_, each, hidden_}, false), previous = plain({directions_, each, hidden_}, false),
          grad_weight = plain({batch_, directions_, kernels_.vectors, hidden_}, false);
    Problem q = problem(threads);
    q.output = row_grid(output);
    q.memory = row_grid(own_memory ? second : output);
    if (with_output_) q.grad_output = row_grid(*given("grad_output"));
    if (with_final_) q.grad_final = state_grid(*given("grad_final"));
    q.grad_x = row_grid(grad_x);
    q.grad_state = state_grid(grad_state);
    if (kernels_.vectors) q.grad_weight = weight_grid(grad_weight);
    if (kernels_.matrix) {
      q.q = row_grid(second);
      q.grad_q = {grad_q.buffer.get(), 0, grad_q.strides[1], grad_q.strides[0]};
      q.previous = {previous.buffer.get(), 0, previous.strides[1], previous.strides[0]};
      q.first_token = first_token_.data();
    }
    run_tiles(kernels_.backward, q);

    std::vector<Named> all;
    all.push_back({"output", std::move(output)});
    all.push_back({"memory", std::move(second)});
    all.push_back({"final", std::move(final)});
    all.push_back({"grad_x", std::move(grad_x)});
    all.push_back({"grad_state", std::move(grad_state)});
    all.push_back({"grad_weight", std::move(grad_weight)});
    all.push_back({"grad_q", std::move(grad_q)});
    all.push_back({"previous", std::move(previous)});
    for (const Named& result : all) result.array.check_written(result.name);
    return all;
  }
};

// One random step of attention on a memory, of which the last sequences may have no query.
class AttentionCase {
 public:
  AttentionCase(const lrn::AttentionKernels& kernels, const Format& format) : kernels_(kernels), format_(format) {
    const int64_t all = coin(5) ? 0 : draw(1, 9);
    sequences_ = coin() ? all : draw(0, all);
    heads_ = draw(1, 4);
    size_ = coin(10) ? draw(63, 65) : draw(1, 40);
    starts_.push_back(0);
    for (int64_t r = 0; r < all; ++r) {
      const int64_t length = coin(20) ? 0 : coin(10) ? draw(16, 40) : draw(1, 9);
      starts_.push_back(starts_.back() + length);
      longest_ = std::max(longest_, length);
    }
    longest_ += coin(20) ? draw(1, 3) : 0;
    now = "attention, type " + std::to_string(int(format.type)) + ", B " + std::to_string(sequences_) + " of " +
          std::to_string(all) + ", heads " + std::to_string(heads_) + ", size " + std::to_string(size_) +
          ", longest " + std::to_string(longest_);
    const int64_t width = heads_ * size_, rows = starts_.back();
    for (const char* name : {"query", "grad_context"}) add(name, {sequences_, width});
    for (const char* name : {"keys", "values", "grad_keys", "grad_values"}) add(name, {rows, width});
    add("score", {size_});
    for (const char* name : {"keys", "values"}) {  // what belongs to sequences without a query is not read
      Array& array = given(name);
      array.each([&](const auto& index) {
        if (index[0] >= starts_[sequences_]) array.put(array.offset(index), format_.nan);
      });
    }
    with_keys_ = coin(80);
    with_values_ = coin(80);
  }

  // However the work is cut, the same bits.
  void run() {
    const std::vector<Named> alone = results(true);
    for (int again = 0; again < 2; ++again) {
      const std::vector<Named> shared = results(false);
      for (size_t i = 0; i < alone.size(); ++i) {
        if (!shared[i].array.same(alone[i].array)) fail(std::string(alone[i].name) + ": other bits in pieces");
      }
    }
  }

 private:
  const lrn::AttentionKernels& kernels_;
  Format format_;
  int64_t sequences_, heads_, size_, longest_ = 0;
  bool with_keys_, with_values_;
  std::vector<int64_t> starts_;
  std::vector<Named> given_;

  Array array(std::vector<int64_t> shape, bool gaps) const {
    std::vector<int> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    return {format_, shape, order, gaps};
  }
  void add(const char* name, std::vector<int64_t> shape) {
    given_.push_back({name, array(shape, coin())});
    given_.back().array.fill();
  }
  Array& given(const std::string& name) {
    for (Named& entry : given_) {
      if (entry.name == name) return entry.array;
    }
    fail("there is no " + name);
  }
  static Grid rows_of(const Array& array) { return {array.buffer.get(), 0, array.strides[0]}; }
  // A gradient as it stands before the step.
  Array begun(const char* name) {
    const Array& before = given(name);
    Array copy = before.blank();
    std::memcpy(copy.buffer.get(), before.buffer.get(), before.length * format_.bytes);
    return copy;
  }

  static void run_pieces(lrn::AttentionKernel kernel, const lrn::Attention& p, bool whole) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int64_t first = 0; first < p.places(); first = pieces.back().second) {
      pieces.emplace_back(first, whole ? p.places() : std::min(p.places(), first + draw(1, 12)));
    }
    std::shuffle(pieces.begin(), pieces.end(), source);
    for (const auto& [first, last] : pieces) kernel(p, first, last);
  }

  std::vector<Named> results(bool whole) {
    const int64_t width = heads_ * size_;
    std::vector<Named> all;
    all.reserve(6);
    const auto result = [&](const char* name, Array array) -> Array& {
      all.push_back({name, std::move(array)});
      return all.back().array;
    };
    // As torch allocates them, in sizes that are exact.
    Array& weights = result("weights", array({sequences_, heads_, longest_}, false));
    lrn::Attention p;
    p.sequences = sequences_, p.heads = heads_, p.size = size_, p.longest = longest_;
    p.starts = starts_.data();
    p.score = given("score").buffer.get();
    p.query = rows_of(given("query"));
    p.keys = rows_of(given("keys"));
    p.values = rows_of(given("values"));
    p.context = rows_of(result("context", array({sequences_, width}, false)));
    p.weights = weights.buffer.get();
    run_pieces(kernels_.forward, p, whole);

    p.context = {};
    p.grad_context = rows_of(given("grad_context"));
    p.grad_query = rows_of(result("grad_query", array({sequences_, width}, false)));
    p.grad_score = rows_of(result("grad_score", array({sequences_, size_}, false)));
    Array &keys = result("grad_keys", begun("grad_keys")), &values = result("grad_values", begun("grad_values"));
    if (with_keys_) p.grad_keys = rows_of(keys);
    if (with_values_) p.grad_values = rows_of(values);
    run_pieces(kernels_.backward, p, whole);
    for (const Named& each : all) each.array.check_written(each.name);
    return all;
  }
};

}  // namespace

int main(int count, char** arguments) {
  const int problems = count > 1 ? std::atoi(arguments[1]) : 2000;
  for (const lrn::InstructionSet& set : lrn::instruction_sets()) {
    if (set.kernels->empty()) continue;
    for (int i = 0; i < problems; ++i) {
      const lrn::Kernels& kernels = (*set.kernels)[i % set.kernels->size()];
      for (const Format& format : kFormats) {
        if (format.type == kernels.type) Case(kernels, format).run();
        for (const lrn::AttentionKernels& attention : *set.attention) {
          if (format.type == attention.type && i % 4 == 0) AttentionCase(attention, format).run();
        }
      }
    }
    std::printf("%s: %d problems, ok\n", std::string(set.name).c_str(), problems);
  }
}
