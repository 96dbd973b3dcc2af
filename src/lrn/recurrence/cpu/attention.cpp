// The torch ops of additive attention. Schemas in ../schemas.py, shapes as in ../attention.py.
#include "call.h"

namespace lrn {
namespace {

// One call: its sizes, checked, and where the kernels find things.
class AttentionCall {
 public:
  Attention problem;
  const AttentionKernels* kernels = nullptr;

  AttentionCall(const Tensor& query, const Tensor& score, const Tensor& keys, const Tensor& values,
                const Tensor& starts, int64_t longest)
      : query_(with_adjacent_features(query)),
        score_(with_adjacent_features(score)),
        keys_(with_adjacent_features(keys)),
        values_(with_adjacent_features(values)) {
    const Type type = type_of(query);
    for (const AttentionKernels& each : *instruction_set().attention) {
      if (each.type == type) kernels = &each;
    }
    STD_TORCH_CHECK(kernels != nullptr && query.is_cpu(), "lrn: query must be float32 or float64, on the CPU");
    Attention& p = problem;
    STD_TORCH_CHECK(query.dim() == 2, "lrn: query must have 2 dimensions, got ", query.dim());
    const int64_t width = query.size(1);
    STD_TORCH_CHECK(score.dim() == 1 && score.size(0) > 0 && width > 0 && width % score.size(0) == 0,
                    "lrn: score must have one dimension, whose size divides query's ", width, " features");
    check_type(score, query, "score");
    STD_TORCH_CHECK(keys.dim() == 2 && keys.size(1) == width, "lrn: keys must be [N, ", width, "]");
    check_type(keys, query, "keys");
    check_rows(values, keys.size(0), width, query, "values");
    p.sequences = query.size(0);
    p.size = score.size(0);
    p.heads = width / p.size;
    p.longest = longest;
    read_starts(starts, keys.size(0));
    p.score = score_.data_ptr();
    p.query = rows_of(query_);
    p.keys = rows_of(keys_);
    p.values = rows_of(values_);
  }

  static Grid rows_of(const Tensor& x) { return {x.data_ptr(), 0, x.stride(0)}; }

  static void check_type(const Tensor& x, const Tensor& query, const char* name) {
    STD_TORCH_CHECK(x.scalar_type() == query.scalar_type() && x.is_cpu(), "lrn: ", name,
                    " must be on the CPU and of query's type");
  }
  static void check_rows(const Tensor& x, int64_t rows, int64_t width, const Tensor& query, const char* name) {
    STD_TORCH_CHECK(x.dim() == 2 && x.size(0) == rows && x.size(1) == width, "lrn: ", name, " must be [", rows, ", ",
                    width, "]");
    check_type(x, query, name);
  }

  // A gradient that is there already, to be added to: row by row, each only once.
  Grid added_to(const OptionalTensor& x, const Tensor& query, const char* name) const {
    if (!x.has_value()) return {};
    check_rows(*x, keys_.size(0), query.size(1), query, name);
    STD_TORCH_CHECK((x->size(1) <= 1 || x->stride(1) == 1) && (x->size(0) <= 1 || x->stride(0) >= x->size(1)),
                    "lrn: ", name, " must have adjacent features and rows of their own in memory");
    return rows_of(*x);
  }

  void run(AttentionKernel kernel) const {
    constexpr int64_t worth_a_thread = 8192;  // elements; below, waking a thread costs more
    const int64_t grain = std::max<int64_t>(1, worth_a_thread / (problem.heads * problem.size));
    torch::stable::parallel_for(0, problem.places(), grain,
                                [&](int64_t first, int64_t last) { kernel(problem, first, last); });
  }

 private:
  Tensor query_, score_, keys_, values_;
  std::vector<int64_t> starts_;

  void read_starts(const Tensor& starts, int64_t rows) {
    STD_TORCH_CHECK(starts.scalar_type() == ScalarType::Long && starts.dim() == 1 && starts.is_cpu(),
                    "lrn: starts must be int64, of one dimension, on the CPU");
    STD_TORCH_CHECK(starts.size(0) > problem.sequences, "lrn: starts must have more entries than query has rows, ",
                    problem.sequences, ", got ", starts.size(0));
    const int64_t* data = static_cast<const int64_t*>(starts.data_ptr());
    starts_.resize(problem.sequences + 1);
    for (int64_t r = 0; r <= problem.sequences; ++r) {
      starts_[r] = data[r * starts.stride(0)];
      const int64_t before = r ? starts_[r - 1] : 0;
      STD_TORCH_CHECK(starts_[r] >= before && starts_[r] <= rows, "lrn: starts must not fall, and be from 0 to ", rows,
                      ", got ", starts_[r]);
      STD_TORCH_CHECK(r == 0 || starts_[r] - before <= problem.longest, "lrn: a sequence has ", starts_[r] - before,
                      " rows, more than longest, ", problem.longest);
    }
    problem.starts = starts_.data();
  }
};

// The sum of all rows, in their order: torch's own may depend on the number of threads.
template <class Number>
void add_up(const Tensor& rows, const Tensor& total) {
  const Number* from = static_cast<const Number*>(rows.data_ptr());
  Number* to = static_cast<Number*>(total.data_ptr());
  const int64_t size = rows.size(1);
  std::fill_n(to, size, Number(0));
  for (int64_t r = 0; r < rows.size(0); ++r) {
    for (int64_t c = 0; c < size; ++c) to[c] += from[r * size + c];
  }
}

std::tuple<Tensor, Tensor> attend(const Tensor& query, const Tensor& score, const Tensor& keys, const Tensor& values,
                                  const Tensor& starts, int64_t longest) {
  STD_TORCH_CHECK(longest >= 0, "lrn: longest must not be negative, got ", longest);
  AttentionCall call(query, score, keys, values, starts, longest);
  Attention& p = call.problem;
  Tensor context = torch::stable::new_empty(query, std::vector<int64_t>{p.sequences, p.heads * p.size});
  Tensor weights = torch::stable::new_empty(query, std::vector<int64_t>{p.sequences, p.heads, longest});
  p.context = AttentionCall::rows_of(context);
  p.weights = weights.data_ptr();
  call.run(call.kernels->forward);
  return {context, weights};
}

std::tuple<Tensor, Tensor> attend_backward(
    const Tensor& grad_context, const Tensor& query, const Tensor& score, const Tensor& keys, const Tensor& values,
    const Tensor& starts, const Tensor& weights, const OptionalTensor& grad_keys, const OptionalTensor& grad_values) {
  STD_TORCH_CHECK(weights.dim() == 3, "lrn: weights must have 3 dimensions, got ", weights.dim());
  AttentionCall call(query, score, keys, values, starts, weights.size(2));
  Attention& p = call.problem;
  STD_TORCH_CHECK(weights.size(0) == p.sequences && weights.size(1) == p.heads, "lrn: weights do not fit query");
  AttentionCall::check_type(weights, query, "weights");
  AttentionCall::check_rows(grad_context, p.sequences, p.heads * p.size, query, "grad_context");
  const Tensor above = with_adjacent_features(grad_context), dense = torch::stable::contiguous(weights);
  p.grad_context = AttentionCall::rows_of(above);
  p.weights = dense.data_ptr();
  p.grad_keys = call.added_to(grad_keys, query, "grad_keys");
  p.grad_values = call.added_to(grad_values, query, "grad_values");
  Tensor grad_query = torch::stable::new_empty(query, std::vector<int64_t>{p.sequences, p.heads * p.size});
  Tensor grad_score = torch::stable::new_empty(query, std::vector<int64_t>{p.size});
  const Tensor each = torch::stable::new_empty(query, std::vector<int64_t>{p.sequences, p.size});
  p.grad_query = AttentionCall::rows_of(grad_query);
  p.grad_score = AttentionCall::rows_of(each);
  call.run(call.kernels->backward);
  call.kernels->type == Type::f32 ? add_up<float>(each, grad_score) : add_up<double>(each, grad_score);
  return {grad_query, grad_score};
}

}  // namespace
}  // namespace lrn

STABLE_TORCH_LIBRARY_IMPL(lrn, CPU, m) {
  m.impl("attend", TORCH_BOX(&lrn::attend));
  m.impl("attend_backward", TORCH_BOX(&lrn::attend_backward));
}
