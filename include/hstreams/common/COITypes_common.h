/* The header of the same name, as found from within COI's folder. */
#include "../intel-coi/common/COITypes_common.h"
