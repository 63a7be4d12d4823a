// SPDX-License-Identifier: MIT
#include "base/mutex.h"

_Thread_local struct cancel_state mutex_state;
