// Runs a model with lrn's units in C++, without Python: a package that AOTInductor has compiled (package.py).
//
//   python examples/cpp/package.py .
//   cmake -S examples/cpp -B build/cpp -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
//   cmake --build build/cpp
//   build/cpp/run "$(python -c 'import lrn; print(lrn.library_path())')" model.pt2 inputs.pt outputs.pt
//
// inputs.pt is a list of tensors written by torch.save, outputs.pt a tuple that torch.load reads.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <iostream>
#include <iterator>

int main(int count, char** words) try {
  if (count != 5) throw std::runtime_error("usage: run LIBRARY MODEL.pt2 INPUTS.pt OUTPUTS.pt");
  // The ops of lrn's units, which the model calls.
  if (!dlopen(words[1], RTLD_NOW)) throw std::runtime_error(dlerror());
  std::ifstream file(words[3], std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + words[3]);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const c10::IValue list = torch::jit::pickle_load(bytes);
  std::vector<at::Tensor> inputs;
  for (const c10::IValue& value : list.toListRef()) inputs.push_back(value.toTensor());

  torch::inductor::AOTIModelPackageLoader model(words[2]);
  const std::vector<at::Tensor> outputs = model.run(inputs);

  const std::vector<c10::IValue> values(outputs.begin(), outputs.end());
  const std::vector<char> written = torch::jit::pickle_save(c10::ivalue::Tuple::create(values));
  std::ofstream(words[4], std::ios::binary).write(written.data(), written.size());
  for (const at::Tensor& output : outputs) std::cout << output.sizes() << '\n';
} catch (const c10::Error& error) {
  std::cerr << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
