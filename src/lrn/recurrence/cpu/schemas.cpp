// The ops' schemas, for programs without Python, where ../library.py defines them. The list is that of
// ../schemas.py, from which schemas.inc is made when this is built.
#include <torch/csrc/stable/library.h>

#include <exception>

STABLE_TORCH_LIBRARY_FRAGMENT(lrn, m) {
  try {
#include "schemas.inc"
  } catch (const std::exception&) {
    // Python has defined them all, and torch has said so. An exception from here would end the process.
  }
}
