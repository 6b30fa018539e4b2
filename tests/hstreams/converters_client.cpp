// A program of version 1.1 or later brings the converters that hStreams_common.h had before.
#include <hStreams_source.h>

#include "check.h"
#include "type_converter.h"

template <class Converter, class Value>
static Value there_and_back(const Value& value) {
  Converter source, sink;
  source.Set(value);
  for (size_t i = 0; i < (sizeof value + 7) / 8; ++i) sink.Set_uint64_t(source.Get_uint64_t(i), i);
  return sink.Get();
}

int main() {
  const Complex z = {1, -2};
  const Six six = {{1, 2, 3, 4, 5, 6}};
  charToUint64_t letter;
  letter.Set('L');
  CHECK(letter.Get_uint64_t() == 'L');
  CHECK(there_and_back<floatToUint64_t>(0.1f) == 0.1f);
  CHECK(there_and_back<doubleToUint64_t>(0.1) == 0.1);
  CHECK(there_and_back<complexToUint64_t>(z).imag == -2);
  CHECK(there_and_back<sixToUint64_t>(six).words[5] == 6);
  return 0;
}
