/* The header of the same name, as found from within COI's folder. */
#include "../intel-coi/common/COIMacros_common.h"
