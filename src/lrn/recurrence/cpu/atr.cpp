// The torch ops of ATR, whose recurrence has a matrix inside. Schemas in ../schemas.py, shapes as in ../atr.py.
#include <array>

#include "call.h"

namespace lrn {
namespace {

class AtrCall : public Call {
 public:
  AtrCall(const Tensor& x, const Tensor& state, const Tensor& weight, const OptionalTensor& bias,
          const OptionalTensor& lengths, const OptionalTensor& batch_sizes, const OptionalTensor& reset,
          const std::string& activation, const std::string& direction, bool batch_first)
      : Call(x, state, std::nullopt, lengths, batch_sizes, reset, "atr_" + activation, direction, batch_first,
             /*matrix=*/true) {
    Problem& p = problem;
    STD_TORCH_CHECK(weight.dim() == 3 && weight.size(0) == p.directions && weight.size(1) == p.hidden &&
                        weight.size(2) == p.hidden,
                    "lrn: ATR needs weight [D, H, H]");
    check_type(weight, x, "weight");
    p.weight = {weight.data_ptr(), 0, weight.stride(1), weight.stride(0), weight.stride(2)};
    if (bias.has_value()) {
      STD_TORCH_CHECK(bias->dim() == 2 && bias->size(0) == p.directions && bias->size(1) == p.hidden,
                      "lrn: ATR needs bias [D, H]");
      check_type(*bias, x, "bias");
      bias_ = with_adjacent_features(*bias);
      p.bias = {bias_.data_ptr(), 0, 0, bias_.stride(0)};
    }
  }

  // The row of grad_q and previous at which each row of the batch begins; returns how many there are.
  int64_t count_tokens() {
    int64_t tokens = 0;
    for (int64_t b = 0; b < problem.batch; ++b) {
      first_token_.push_back(tokens);
      tokens += problem.lengths ? problem.lengths[b] : problem.steps;
    }
    problem.first_token = first_token_.data();
    return tokens;
  }
  static Grid tokens_of(const Tensor& x) { return {x.data_ptr(), 0, x.stride(1), x.stride(0)}; }

 private:
  Tensor bias_;
  std::vector<int64_t> first_token_;
};

std::tuple<Tensor, Tensor, Tensor> atr(
    const Tensor& x, const Tensor& state, const Tensor& weight, const OptionalTensor& bias,
    const OptionalTensor& lengths, const OptionalTensor& batch_sizes, const OptionalTensor& reset,
    const std::string& activation, const std::string& direction, bool batch_first, bool keep) {
  AtrCall call(x, state, weight, bias, lengths, batch_sizes, reset, activation, direction, batch_first);
  Tensor output = call.new_output(x), final = Call::new_state(state);
  Tensor q = keep ? call.new_output(x) : Call::new_nothing(x);
  call.problem.output = call.output_of(output);
  if (keep) call.problem.q = call.output_of(q);
  call.problem.final = Call::state_of(final);
  call.run(call.kernels->forward);
  return {output, q, final};
}

// out = a b, written in place: unlike the plain product this one is not for autocast to change.
void multiply(Tensor out, const Tensor& a, const Tensor& b) {
  using torch::stable::detail::from;
  std::array<StableIValue, 3> stack{from(a), from(b), from(out)};
  STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::mm", "out", stack.data(), TORCH_ABI_VERSION));
  torch::stable::detail::to<Tensor>(stack[0]);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> atr_backward(
    const OptionalTensor& grad_output, const OptionalTensor& grad_final, const Tensor& x, const Tensor& state,
    const Tensor& weight, const OptionalTensor& bias, const Tensor& output, const Tensor& q,
    const OptionalTensor& lengths, const OptionalTensor& batch_sizes, const OptionalTensor& reset,
    const std::string& activation, const std::string& direction, bool batch_first) {
  AtrCall call(x, state, weight, bias, lengths, batch_sizes, reset, activation, direction, batch_first);
  Problem& p = call.problem;
  call.check_output(output, x, "output");
  call.check_output(q, x, "q");
  const Tensor h = with_adjacent_features(output), kept = with_adjacent_features(q);
  p.output = call.output_of(h);
  p.q = call.output_of(kept);
  call.read_gradients(grad_output, grad_final, x, state);
  auto [grad_x, grad_state] = call.write_gradients(x, state);
  const std::vector<int64_t> tokens{p.directions, call.count_tokens(), p.hidden};
  Tensor grad_q = torch::stable::new_empty(x, tokens), previous = torch::stable::new_empty(x, tokens);
  p.grad_q = AtrCall::tokens_of(grad_q);
  p.previous = AtrCall::tokens_of(previous);
  call.run(call.kernels->backward);

  // What is summed over all tokens waits until here, where one large product does it.
  Tensor grad_weight = torch::stable::new_empty(x, std::vector<int64_t>{p.directions, p.hidden, p.hidden});
  for (int64_t d = 0; d < p.directions; ++d) {
    multiply(torch::stable::select(grad_weight, 0, d),
             torch::stable::transpose(torch::stable::select(grad_q, 0, d), 0, 1),
             torch::stable::select(previous, 0, d));
  }
  Tensor grad_bias = Call::new_nothing(x);
  if (bias.has_value()) grad_bias = torch::stable::sum(grad_q, std::vector<int64_t>{1});
  return {grad_x, grad_state, grad_weight, grad_bias};
}

}  // namespace
}  // namespace lrn

STABLE_TORCH_LIBRARY_IMPL(lrn, CPU, m) {
  m.impl("atr", TORCH_BOX(&lrn::atr));
  m.impl("atr_backward", TORCH_BOX(&lrn::atr_backward));
}
