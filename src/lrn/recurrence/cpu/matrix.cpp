// LSTM, GRU, and ATR with a norm, for programs without Python, where ../matrix.py runs these ops. Schemas in
// ../schemas.py, shapes as in ../matrix.py, equations as in ../cells.py.
//
// A step is one product of torch's and one elementwise pass, in vectors that every processor has.
#include <array>
#include <cmath>

#include "atr.h"
#include "call.h"

namespace lrn {
namespace {

struct Lstm {
  static constexpr int gates = 4, parts = 2;

  struct Forward {
    template <class T>
    static LRN_INLINE Two<T> of(const T& x_i, const T& x_f, const T& x_g, const T& x_o, const T& u_i, const T& u_f,
                                const T& u_g, const T& u_o, const T& c) {
      const T memory = sigmoid(x_f + u_f) * c + sigmoid(x_i + u_i) * tanh(x_g + u_g);
      return {sigmoid(x_o + u_o) * tanh(memory), memory};
    }
  };
};

struct Gru {
  static constexpr int gates = 3, parts = 1;

  struct Forward {
    template <class T>
    static LRN_INLINE std::tuple<T> of(const T& x_r, const T& x_z, const T& x_n, const T& u_r, const T& u_z,
                                       const T& u_n, const T& h) {
      const T z = sigmoid(x_z + u_z), n = tanh(x_n + sigmoid(x_r + u_r) * u_n);
      return {one_minus(z) * n + z * h};
    }
  };
};

template <class G>
struct PlainAtr : Atr<G> {
  static constexpr int parts = 1;
};

enum class Norm { none, layer, rms };

// What all directions of a walk share.
struct MatrixWalk {
  const Problem& p;
  Norm norm;
  Tensor weight, product;       // [D, gates*H, H], contiguous; [B, gates*H], room for the product of a step
  OptionalTensor bias, scale;   // [D, gates*H], contiguous
  Tensor final;                 // [parts, D, B, H], contiguous: the state, carried from step to step
};

// Normalised over its whole width, then scaled, then with its bias.
template <class Number>
void finish_product(Number* u, int64_t width, Norm norm, const Number* scale, const Number* bias) {
  constexpr Number epsilon = Number(1e-8);
  if (norm != Norm::none) {
    Number mean = 0, square = 0;
    if (norm == Norm::layer) {
      for (int64_t k = 0; k < width; ++k) mean += u[k];
      mean /= width;
    }
    for (int64_t k = 0; k < width; ++k) square += (u[k] - mean) * (u[k] - mean);
    const Number factor = 1 / std::sqrt(square / width + epsilon);
    for (int64_t k = 0; k < width; ++k) u[k] = (u[k] - mean) * factor * scale[k];
  }
  if (bias) {
    for (int64_t k = 0; k < width; ++k) u[k] += bias[k];
  }
}

// One token: its projection, its row of the product, and the row's state, which is read and then written.
template <class Cell, class Number>
class Token {
  static constexpr int parts = Cell::parts, inputs = 2 * Cell::gates + 1;

 public:
  explicit Token(int64_t hidden) : hidden_(hidden), memory_(hidden) {}

  // h is state[0]; of a pair (h, c) the elementwise pass reads c alone, for h is in the product.
  void run(const Number* x, const Number* u, const std::array<Number*, parts>& state, Number* output) {
    RowFunction<typename Cell::Forward, Number, inputs, parts> step;
    for (int k = 0; k < Cell::gates; ++k) {
      step.in[k] = x + k * hidden_;
      step.in[Cell::gates + k] = u + k * hidden_;
    }
    step.in[inputs - 1] = state[parts - 1];
    step.out[0] = output;
    if constexpr (parts == 2) step.out[1] = memory_.data();  // a row's last vector overlaps the one before it
    run_row<16>(step, hidden_);
    std::memcpy(state[0], output, hidden_ * sizeof(Number));
    if constexpr (parts == 2) std::memcpy(state[1], memory_.data(), hidden_ * sizeof(Number));
  }

 private:
  int64_t hidden_;
  std::vector<Number> memory_;
};

// out = a b, in place.
void multiply(const Tensor& out, const Tensor& a, const Tensor& b) {
  using torch::stable::detail::from;
  std::array<StableIValue, 3> stack{from(a), from(b), from(out)};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::mm", "out", stack.data(), TORCH_ABI_VERSION));
  torch::stable::detail::to<Tensor>(stack[0]);
}

template <class Cell, class Number>
void walk_direction(const MatrixWalk& all, int64_t d) {
  const Problem& p = all.p;
  const Walk walk{p, p.reverse[d]};
  const int64_t width = Cell::gates * p.hidden;
  const View<Number> x(p, p.x, d, 0), output(p, p.output, d, 0);
  const View<const bool> reset(p, p.reset, 0, 0);
  const Tensor hidden = torch::stable::select(torch::stable::select(all.final, 0, 0), 0, d);  // [B, H]
  const Tensor matrix = torch::stable::transpose(torch::stable::select(all.weight, 0, d), 0, 1);
  const auto vector = [&](const OptionalTensor& of) -> const Number* {
    return of.has_value() ? static_cast<const Number*>(of->data_ptr()) + d * width : nullptr;
  };
  const Number *bias = vector(all.bias), *scale = vector(all.scale);
  auto* product = static_cast<Number*>(all.product.data_ptr());
  auto* states = static_cast<Number*>(all.final.data_ptr());
  const auto state_of = [&](int64_t b) {
    std::array<Number*, Cell::parts> parts;
    for (int k = 0; k < Cell::parts; ++k) parts[k] = states + ((k * p.directions + d) * p.batch + b) * p.hidden;
    return parts;
  };
  for (int64_t s = 0; s < p.steps; ++s) {
    const int64_t t = walk.time(s);
    for (int64_t b = 0; b < p.batch; ++b) {
      if (t >= walk.length(b) || !walk.border(reset, t, b)) continue;
      for (Number* part : state_of(b)) std::fill_n(part, p.hidden, Number(0));
    }
    multiply(all.product, hidden, matrix);
    torch::stable::parallel_for(0, p.batch, 1 + 2048 / (1 + width), [&](int64_t first, int64_t last) {
      Token<Cell, Number> token(p.hidden);
      for (int64_t b = first; b < last; ++b) {
        if (t >= walk.length(b)) continue;
        Number* u = product + b * width;
        finish_product(u, width, all.norm, scale, bias);
        token.run(x.token(t, b), u, state_of(b), output.token(t, b));
      }
    });
  }
}

template <class Cell>
void walk_all(const MatrixWalk& all, bool wide) {
  for (int64_t d = 0; d < all.p.directions; ++d) {
    if (wide) {
      walk_direction<Cell, double>(all, d);
    } else {
      walk_direction<Cell, float>(all, d);
    }
  }
}

using MatrixCell = void (*)(const MatrixWalk&, bool);

struct NamedCell {
  std::string_view name;
  int gates, parts;
  MatrixCell run;
};

template <class Cell>
constexpr NamedCell named(std::string_view name) {
  return {name, Cell::gates, Cell::parts, walk_all<Cell>};
}

const NamedCell& find_cell(const std::string& name) {
  static constexpr std::array cells{named<Lstm>("lstm"), named<Gru>("gru"), named<PlainAtr<Tanh>>("atr_tanh"),
                                    named<PlainAtr<Identity>>("atr_identity")};
  for (const NamedCell& cell : cells) {
    if (cell.name == name) return cell;
  }
  STD_TORCH_CHECK(false, "lrn: there is no cell '", name, "'");
}

Norm find_norm(const std::optional<std::string>& name) {
  if (!name.has_value()) return Norm::none;
  STD_TORCH_CHECK(*name == "layer" || *name == "rms", "lrn: norm must be layer or rms, got '", *name, "'");
  return *name == "layer" ? Norm::layer : Norm::rms;
}

// Half types are computed in float, and handed back as they came.
ScalarType computed_in(const Tensor& x) {
  return type_of(x) == Type::f64 ? ScalarType::Double : ScalarType::Float;
}

std::tuple<Tensor, Tensor> walk(
    const Tensor& x, const Tensor& state, const Tensor& weight, const OptionalTensor& bias, const OptionalTensor& scale,
    const OptionalTensor& lengths, const OptionalTensor& batch_sizes, const OptionalTensor& reset,
    const std::string& cell, const std::optional<std::string>& norm, const std::string& direction, bool batch_first) {
  const NamedCell& kind = find_cell(cell);
  Layout layout(batch_sizes, batch_first);
  Problem& p = layout.problem;
  layout.read_direction(direction);
  const int64_t rows = layout.rows();
  STD_TORCH_CHECK(x.dim() == rows + 1, "lrn: x must have ", rows + 1, " dimensions, got ", x.dim());
  STD_TORCH_CHECK(state.dim() == 4 && state.size(0) == kind.parts && state.size(1) == p.directions,
                  "lrn: state does not fit ", cell, ", ", direction);
  p.batch = state.size(2);
  p.hidden = state.size(3);
  const int64_t width = kind.gates * p.hidden;
  STD_TORCH_CHECK(x.size(rows) == p.directions * width, "lrn: x does not fit ", cell, ", ", direction);
  STD_TORCH_CHECK(weight.dim() == 3 && weight.size(0) == p.directions && weight.size(1) == width &&
                      weight.size(2) == p.hidden,
                  "lrn: ", cell, " needs weight [D, ", width, ", ", p.hidden, "]");
  layout.read_rows(x, lengths, batch_sizes);
  if (reset.has_value()) layout.read_reset(*reset, x);

  const ScalarType number = computed_in(x);
  const auto ready = [&](const Tensor& value) { return torch::stable::contiguous(torch::stable::to(value, number)); };
  const auto vectors = [&](const OptionalTensor& value, const char* name) -> OptionalTensor {
    if (!value.has_value()) return std::nullopt;
    STD_TORCH_CHECK(value->dim() == 2 && value->size(0) == p.directions && value->size(1) == width, "lrn: ", name,
                    " must be [D, ", width, "]");
    return ready(*value);
  };
  const Norm kept = find_norm(norm);
  STD_TORCH_CHECK(kept == Norm::none || scale.has_value(), "lrn: a norm needs a scale");
  const Tensor given = ready(x);
  std::vector<int64_t> shape{x.size(0)};
  if (rows == 2) shape.push_back(x.size(1));
  shape.push_back(p.directions * p.hidden);
  Tensor output = torch::stable::new_zeros(given, shape);  // what is behind a row's end stays so
  Tensor final = torch::stable::clone(ready(state));
  p.x = layout.rows_of(given);
  p.x.direction = width;
  p.output = layout.rows_of(output);
  p.output.direction = p.hidden;
  kind.run({p, kept, ready(weight), torch::stable::new_empty(given, std::vector<int64_t>{p.batch, width}),
            vectors(bias, "bias"), vectors(scale, "scale"), final},
           number == ScalarType::Double);
  const ScalarType result = x.scalar_type();
  return {torch::stable::to(output, result), torch::stable::to(final, result)};
}

Tensor linear(const Tensor& x, const Tensor& weight, const OptionalTensor& bias) {
  using torch::stable::detail::from;
  std::array<StableIValue, 3> stack{from(x), from(weight), from(bias)};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::linear", "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Tensor>(stack[0]);
}

// Projection and walk of a layer; the directions of the projection are beside each other.
std::tuple<Tensor, Tensor> fused(
    const Tensor& x, const Tensor& state, const Tensor& weight_ih, const Tensor& weight_hh, const OptionalTensor& bias,
    const OptionalTensor& bias_hh, const OptionalTensor& lengths, const OptionalTensor& batch_sizes,
    const std::string& cell, bool batch_first) {
  STD_TORCH_CHECK(weight_ih.dim() == 3 && (!bias.has_value() || bias->dim() == 2),
                  "lrn: fused needs weight_ih [D, gates*H, I] and bias [D, gates*H]");
  OptionalTensor flat;
  if (bias.has_value()) flat = torch::stable::flatten(*bias, 0, 1);
  const Tensor projected = linear(x, torch::stable::flatten(weight_ih, 0, 1), flat);
  const char* direction = weight_ih.size(0) == 2 ? "both" : "forward";
  return walk(projected, state, weight_hh, bias_hh, std::nullopt, lengths, batch_sizes, std::nullopt, cell,
              std::nullopt, direction, batch_first);
}

}  // namespace
}  // namespace lrn

STABLE_TORCH_LIBRARY_IMPL(lrn, CPU, m) {
  m.impl("walk", TORCH_BOX(&lrn::walk));
  m.impl("fused", TORCH_BOX(&lrn::fused));
}
