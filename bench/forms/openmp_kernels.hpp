// The tile kernels for the devices of OpenMP.
#pragma once

#include <cmath>

#pragma omp declare target
#include "forms/kernels.h"
#pragma omp end declare target

#include "forms/forms.hpp"
