// The converters that programs of version 1.1 and later bring themselves.
#pragma once

#include <stdint.h>
#include <string.h>

template <class TYPE, const size_t sz>
class ConvertToUint64_t {
 public:
  ConvertToUint64_t() { memset(static_cast<void*>(this), 0, sizeof *this); }
  void Set(const TYPE& value) { store_.value = value; }
  void Set_uint64_t(uint64_t word, size_t index = 0) { store_.words[index] = word; }
  TYPE& Get() { return store_.value; }
  uint64_t Get_uint64_t(size_t index = 0) { return store_.words[index]; }

 private:
  union {
    TYPE value;
    uint64_t words[sz];
  } store_;
};
struct Complex {
  double real, imag;
};
struct Six {
  uint64_t words[6];
};
typedef ConvertToUint64_t<char, 1> charToUint64_t;
typedef ConvertToUint64_t<float, 1> floatToUint64_t;
typedef ConvertToUint64_t<double, 1> doubleToUint64_t;
typedef ConvertToUint64_t<Complex, 2> complexToUint64_t;
typedef ConvertToUint64_t<Six, 6> sixToUint64_t;
