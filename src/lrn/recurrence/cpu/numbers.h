// Vectors of numbers: storage types, and sigmoid, tanh and exp without branches.
//
// T stands for a vector, one register wide. An element's result does not depend on its lane, nor on the
// width of the vector.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#define LRN_INLINE inline __attribute__((always_inline))
// For what is a function of its own: compiled, with all that it calls, for the set of kernels.cpp.
#ifdef LRN_TARGET
#define LRN_KERNEL __attribute__((target(LRN_TARGET), flatten, noinline))
#else
#define LRN_KERNEL __attribute__((flatten, noinline))
#endif

namespace lrn {

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

// What a storage type is computed in.
template <class Storage>
using Compute = std::conditional_t<std::is_same_v<Storage, double>, double, float>;

template <class Lane, int bytes>
struct VectorOf {
  typedef Lane type __attribute__((vector_size(bytes)));
};
template <class Lane, int bytes>
using Vector = typename VectorOf<Lane, bytes>::type;

template <class T>
using Lane = std::remove_cvref_t<decltype(T{}[0])>;
template <class T>
constexpr int kLanes = sizeof(T) / sizeof(Lane<T>);

// Loading and storing: any storage type <-> its compute type ----------------------------------------

template <class To, class From>
LRN_INLINE To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T>
struct Memory {
  static constexpr int lanes = kLanes<T>;
  using Words = Vector<uint32_t, 4 * lanes>;
  using Halves = Vector<uint16_t, 2 * lanes>;

  template <class V>
  static LRN_INLINE V raw(const void* from) {
    V v;
    std::memcpy(&v, from, sizeof(V));
    return v;
  }

  static LRN_INLINE T load(const Lane<T>* from) { return raw<T>(from); }
  static LRN_INLINE void store(Lane<T>* to, const T& x) { std::memcpy(to, &x, sizeof(T)); }

  static LRN_INLINE T load(const BFloat16* from) {
    return bits_of<T>(__builtin_convertvector(raw<Halves>(from), Words) << 16);
  }
  static LRN_INLINE void store(BFloat16* to, const T& x) {
    const Words bits = bits_of<Words>(x);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to nearest, ties to even
    const Words nan = (bits >> 16) | 0x40;
    const Words result = (bits & 0x7fffffff) > 0x7f800000 ? nan : rounded;
    const Halves halves = __builtin_convertvector(result, Halves);
    std::memcpy(to, &halves, sizeof(Halves));
  }

  static LRN_INLINE T load(const Float16* from) {
    const Words half = __builtin_convertvector(raw<Halves>(from), Words);
    const Words magnitude = (half & 0x7fff) << 13;
    // Scaling by 2^112 moves half's exponents to float's, subnormals included; 31 is for inf and NaN.
    const Words scaled = bits_of<Words>(bits_of<T>(magnitude) * 0x1p112f);
    const Words result = magnitude >= 0x0f800000 ? scaled | 0x7f800000 : scaled;
    return bits_of<T>(result | ((half & 0x8000) << 16));
  }
  static LRN_INLINE void store(Float16* to, const T& x) {
    const Words bits = bits_of<Words>(x);
    const Words magnitude = bits & 0x7fffffff;
    // Normal: re-bias the exponent and round to nearest even. Subnormal: let an addition round.
    const Words normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    const Words subnormal = bits_of<Words>(bits_of<T>(magnitude) + 0.5f) - 0x3f000000;
    Words half = magnitude < 0x38800000 ? subnormal : normal;
    half = magnitude >= 0x47800000 ? half * 0 + 0x7c00 : half;  // 65520 to 65536 round there by themselves
    half = magnitude > 0x7f800000 ? half * 0 + 0x7e00 : half;
    const Halves halves = __builtin_convertvector(half | ((bits >> 16) & 0x8000), Halves);
    std::memcpy(to, &halves, sizeof(Halves));
  }
};

// sigmoid, tanh and exp -------------------------------------------------------------------------------

// The larger and the smaller of two; b where either is NaN. Compilers turn the plain expression into two
// instructions each, for fear of NaN, though x86 has one that does just this.
#if defined(__x86_64__)
#define LRN_PICK(name, op)                                                                          \
  template <class T>                                                                                \
  LRN_INLINE T name(T a, T b) {                                                                     \
    if constexpr (sizeof(T) == 16 && sizeof(Lane<T>) == 4) {                                        \
      asm(#name "ps %1, %0" : "+x"(a) : "x"(b));                                                    \
    } else if constexpr (sizeof(T) == 16) {                                                         \
      asm(#name "pd %1, %0" : "+x"(a) : "x"(b));                                                    \
    } else if constexpr (sizeof(Lane<T>) == 4) {                                                    \
      asm("v" #name "ps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));                                    \
    } else {                                                                                        \
      asm("v" #name "pd %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));                                    \
    }                                                                                               \
    return a;                                                                                       \
  }
#else
#define LRN_PICK(name, op)                                                                          \
  template <class T>                                                                                \
  LRN_INLINE T name(T a, T b) {                                                                     \
    return a op b ? a : b;                                                                          \
  }
#endif
LRN_PICK(min, <)
LRN_PICK(max, >)
#undef LRN_PICK

template <class T>
LRN_INLINE T clamp(const T& z, Lane<T> low, Lane<T> high) {
  return min(T{} + high, max(T{} + low, z));
}

template <class Lane>
struct Constants;

template <>
struct Constants<float> {
  static constexpr float magic = 0x1.8p23f;  // adding it rounds to a whole number, left in the low bits
  static constexpr float log2e = 0x1.715476p+0f;
  static constexpr float ln2 = 0x1.62e430p-1f;
  static constexpr float gone = 89.0f;  // from here on e^z is infinite and sigmoid(-z) zero
  static constexpr float full = 20.0f;  // from here on sigmoid(z) and tanh(z / 2) are 1
  static constexpr float least = -87.0f;  // down to here e^z is a normal number

  // (e^r - 1 - r) / r^2, minimax fits for |r| <= ln(2) / 2: relative error of e^r 1e-7, and 4e-9.
  template <class T>
  static LRN_INLINE T short_tail(const T& r) {
    return 0x1.fffdfcp-2f + r * (0x1.5557b0p-3f + r * (0x1.572a64p-5f + r * 0x1.106252p-7f));
  }
  template <class T>
  static LRN_INLINE T tail(const T& r) {
    return 0x1.fffffcp-2f + r * (0x1.555490p-3f + r * (0x1.5558f2p-5f + r * (0x1.123a20p-7f + r * 0x1.6a23cep-10f)));
  }
};

template <>
struct Constants<double> {
  static constexpr double magic = 0x1.8p52;
  static constexpr double log2e = 0x1.71547652b82fep+0;
  static constexpr double ln2 = 0x1.62e42fefa39efp-1;
  static constexpr double gone = 710.0;
  static constexpr double full = 40.0;
  static constexpr double least = -708.0;

  // Taylor's series from 1/13! downwards: the next term is below 1e-17.
  template <class T>
  static LRN_INLINE T short_tail(const T& r) {
    return tail(r);
  }
  template <class T>
  static LRN_INLINE T tail(const T& r) {
    T q = r * (1 / 6227020800.0) + 1 / 479001600.0;
    q = q * r + 1 / 39916800.0;
    q = q * r + 1 / 3628800.0;
    q = q * r + 1 / 362880.0;
    q = q * r + 1 / 40320.0;
    q = q * r + 1 / 5040.0;
    q = q * r + 1 / 720.0;
    q = q * r + 1 / 120.0;
    q = q * r + 1 / 24.0;
    q = q * r + 1 / 6.0;
    return q * r + 0.5;
  }
};

// 2^n, from the low bits of n + magic.
template <class T>
LRN_INLINE T power_of_two(const T& shifted) {
  if constexpr (sizeof(Lane<T>) == 4) {
    using Bits = Vector<uint32_t, sizeof(T)>;
    return bits_of<T>((bits_of<Bits>(shifted) << 23) + 0x3f800000);
  } else {
    using Bits = Vector<uint64_t, sizeof(T)>;
    return bits_of<T>((bits_of<Bits>(shifted) << 52) + 0x3ff0000000000000);
  }
}
// All three functions split e^z = 2^n (1 + p), n whole, p = e^r - 1 for |r| <= ln(2) / 2.

// 1 / (1 + e^-x). Where n is one beyond the type's exponents, 2^n is infinite and the result zero.
template <class T>
LRN_INLINE T sigmoid(const T& x) {
  using C = Constants<Lane<T>>;
  const T z = clamp(x, -C::gone, C::full);
  const T shifted = C::magic - z * C::log2e;
  const T r = -z - (shifted - C::magic) * C::ln2;
  const T p = r + r * r * C::short_tail(r);
  return Lane<T>(1) / (power_of_two(shifted) * (p + Lane<T>(1)) + Lane<T>(1));
}

// (e^2x - 1) / (e^2x + 1), from e^2x - 1 itself, so that small x keep their digits.
template <class T>
LRN_INLINE T tanh(const T& x) {
  using C = Constants<Lane<T>>;
  const T z = clamp(x + x, -C::full, C::full);
  const T shifted = z * C::log2e + C::magic;
  const T r = z - (shifted - C::magic) * C::ln2;
  const T p = r + r * r * C::tail(r), scale = power_of_two(shifted);
  const T m = scale * p + (scale - Lane<T>(1));
  return m / (m + Lane<T>(2));
}

// e^x for x <= 0; zero where it is no normal number.
template <class T>
LRN_INLINE T exp(const T& x) {
  using C = Constants<Lane<T>>;
  const T z = clamp(x, C::least, 0);
  const T shifted = z * C::log2e + C::magic;
  const T r = z - (shifted - C::magic) * C::ln2;
  const T p = r + r * r * C::tail(r);
  return x < C::least ? T{} : power_of_two(shifted) * (p + Lane<T>(1));
}

template <class T>
LRN_INLINE T one_minus(const T& x) {
  return Lane<T>(1) - x;
}

}  // namespace lrn
