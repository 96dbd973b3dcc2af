// The torch ops of elementwise recurrences: tensors in, tensors out. Schemas in ../schemas.py, shapes as in ../ops.py.
#include "call.h"

namespace lrn {
namespace {

// Into output and memory, which are there already and may be parts of larger ones; returns the final state.
Tensor scan_into(
    const Tensor& x, const Tensor& state, const OptionalTensor& weight, const OptionalTensor& lengths,
    const OptionalTensor& batch_sizes, const OptionalTensor& reset, const std::string& cell,
    const std::string& direction, bool batch_first, const Tensor& output, const Tensor& memory) {
  Call call(x, state, weight, lengths, batch_sizes, reset, cell, direction, batch_first);
  call.check_written(output, x, "output");
  call.problem.output = call.output_of(output);
  if (call.kernels->parts == 2) {
    call.check_written(memory, x, "memory");
    call.problem.memory = call.output_of(memory);
  }
  Tensor final = Call::new_state(state);
  call.problem.final = Call::state_of(final);
  call.run(call.kernels->forward);
  return final;
}

std::tuple<Tensor, Tensor, Tensor> scan(
    const Tensor& x, const Tensor& state, const OptionalTensor& weight, const OptionalTensor& lengths,
    const OptionalTensor& batch_sizes, const OptionalTensor& reset, const std::string& cell,
    const std::string& direction, bool batch_first) {
  Call call(x, state, weight, lengths, batch_sizes, reset, cell, direction, batch_first);
  const bool own_memory = call.kernels->parts == 2;
  Tensor output = call.new_output(x), final = Call::new_state(state);
  Tensor memory = own_memory ? call.new_output(x) : Call::new_nothing(x);
  call.problem.output = call.output_of(output);
  call.problem.final = Call::state_of(final);
  if (own_memory) call.problem.memory = call.output_of(memory);
  call.run(call.kernels->forward);
  return {output, memory, final};
}

// `memory` is what the steps read: the op's second result for SRU, its output for all others.
std::tuple<Tensor, Tensor, Tensor> scan_backward(
    const OptionalTensor& grad_output, const OptionalTensor& grad_final, const Tensor& x, const Tensor& state,
    const OptionalTensor& weight, const Tensor& memory, const OptionalTensor& lengths,
    const OptionalTensor& batch_sizes, const OptionalTensor& reset, const std::string& cell,
    const std::string& direction, bool batch_first) {
  Call call(x, state, weight, lengths, batch_sizes, reset, cell, direction, batch_first);
  Problem& p = call.problem;
  call.check_output(memory, x, "memory");
  const Tensor kept = with_adjacent_features(memory);
  p.output = p.memory = call.output_of(kept);
  call.read_gradients(grad_output, grad_final, x, state);
  auto [grad_x, grad_state] = call.write_gradients(x, state);
  const int64_t vectors = call.kernels->vectors;
  Tensor grad_weight = Call::new_nothing(x);
  if (vectors > 0) {
    grad_weight = torch::stable::new_empty(x, std::vector<int64_t>{p.batch, p.directions, vectors, p.hidden});
    p.grad_weight = Call::weight_of(grad_weight);
  }
  call.run(call.kernels->backward);
  return {grad_x, grad_state, grad_weight};
}

}  // namespace
}  // namespace lrn

STABLE_TORCH_LIBRARY_IMPL(lrn, CPU, m) {
  m.impl("scan", TORCH_BOX(&lrn::scan));
  m.impl("scan_into", TORCH_BOX(&lrn::scan_into));
  m.impl("scan_backward", TORCH_BOX(&lrn::scan_backward));
}
