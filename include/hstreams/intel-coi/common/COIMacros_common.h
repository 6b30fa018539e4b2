/* What sink code of the time takes from COI: the mark of a function that a stream can call. */
#ifndef COIMACROS_COMMON_H
#define COIMACROS_COMMON_H

#ifdef __cplusplus
#define COINATIVELIBEXPORT extern "C" __attribute__((visibility("default")))
#else
#define COINATIVELIBEXPORT __attribute__((visibility("default")))
#endif

#endif
