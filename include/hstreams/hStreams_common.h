/* Limits and special values of the hStreams interface. */
#ifndef __HSTR_COMMON_H__
#define __HSTR_COMMON_H__

#include <stddef.h>

#include "hStreams_types.h"
#include "hStreams_version.h"

#define DllAccess

#define HSTR_WAIT_CONTROL 0 /* addresses of a stream wait: order everything */
#define HSTR_WAIT_NONE -1   /* order nothing, only make an event */
#define HSTR_TIME_INFINITE -1
#define HSTR_SRC_PHYS_DOMAIN -1
#define HSTR_SRC_LOG_DOMAIN 0

#define HSTR_RETURN_SIZE_LIMIT 64
#define HSTR_ARGS_IMPLEMENTED 19
#define HSTR_MAX_FUNC_NAME_SIZE 80
#define HSTR_MISC_DATA_SIZE 4096
#define HSTR_ARGS_SUPPORTED (HSTR_MISC_DATA_SIZE - HSTR_MAX_FUNC_NAME_SIZE) / sizeof(uint64_t)

/** An event that is complete. */
#define HSTR_EVENT_INITIALIZER \
  {                            \
    { 0, (uint64_t)-1 }        \
  }
/** What hStreams_Alloc1D() takes. */
#define HSTR_BUFFER_PROPS_INITIAL_VALUES \
  { HSTR_MEM_TYPE_NORMAL, HSTR_MEM_ALLOC_PREFERRED, HSTR_BUF_PROP_SRC_PINNED }
/** What hStreams_Alloc1DEx() takes without properties. */
#define HSTR_BUFFER_PROPS_INITIAL_VALUES_EX \
  { HSTR_MEM_TYPE_NORMAL, HSTR_MEM_ALLOC_PREFERRED, 0 }

#ifdef __cplusplus
extern "C++" { /* also where a program includes this in extern "C" */

/** A value as the 64-bit words that sink functions take; bytes that it does not fill are zero. */
template <class TYPE, const size_t sz>
class hStreams_Words {
 public:
  hStreams_Words() {
    for (size_t i = 0; i < sz; ++i) store_.words[i] = 0;
  }
  void Set(const TYPE& value) { store_.value = value; }
  void Set_uint64_t(uint64_t word, size_t index = 0) { store_.words[index] = word; }
  TYPE& Get() { return store_.value; }
  uint64_t Get_uint64_t(size_t index = 0) { return store_.words[index]; }

 private:
  union {
    uint64_t words[sz < (sizeof(TYPE) + 7) / 8 ? -1 : (int)sz];
    TYPE value;
  } store_;
};

/**
 * The names for it of programs before version 1.1, which had them from this header. Later ones
 * bring the template themselves, here or in a header of their own: it is declared, and defined for
 * one and two words only, so that both compile.
 */
template <class TYPE, const size_t sz>
class ConvertToUint64_t;
template <class TYPE>
class ConvertToUint64_t<TYPE, 1> : public hStreams_Words<TYPE, 1> {};
template <class TYPE>
class ConvertToUint64_t<TYPE, 2> : public hStreams_Words<TYPE, 2> {};
typedef ConvertToUint64_t<char, 1> charToUint64_t;
typedef ConvertToUint64_t<float, 1> floatToUint64_t;
typedef ConvertToUint64_t<double, 1> doubleToUint64_t;
}
#endif

#endif
