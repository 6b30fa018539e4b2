/* What this process has of the machine. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct usage {
  long resident_kib;
  long threads;
  long descriptors;
} usage;

static inline long entries_of(const char* folder) {
  DIR* const open_folder = opendir(folder);
  long count = 0;
  if (open_folder == NULL) return -1;
  while (readdir(open_folder) != NULL) ++count;
  closedir(open_folder);
  return count - 2;
}

static inline usage measure_usage(void) {
  usage now = {0, entries_of("/proc/self/task"), entries_of("/proc/self/fd")};
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) abort();
  fclose(file);
  now.resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
  return now;
}

/** The number in a variable of the environment, or another. */
static inline long amount_of(const char* variable, long otherwise) {
  const char* const text = getenv(variable);
  return text != NULL && *text != '\0' ? strtol(text, NULL, 10) : otherwise;
}
