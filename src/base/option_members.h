/* option_members.h - expands the options of some readers of options.def; included several times, so without a guard.
 *
 *     #define OPTION_NET OPTION_MEMBER32           OPTION_LEARNER, _NET, _OPTIM, _LOOP, _CHAIN: macro(TYPE, field)
 *     #include "base/option_members.h"             options of other readers expand to nothing
 */
#ifndef OPTION_LEARNER
#define OPTION_LEARNER(TYPE, field)
#endif
#ifndef OPTION_NET
#define OPTION_NET(TYPE, field)
#endif
#ifndef OPTION_OPTIM
#define OPTION_OPTIM(TYPE, field)
#endif
#ifndef OPTION_LOOP
#define OPTION_LOOP(TYPE, field)
#endif
#ifndef OPTION_CHAIN
#define OPTION_CHAIN(TYPE, field)
#endif
#define OPTION_NONE(TYPE, field)
#define OPT(TYPE, field, name, def, least, most, words, GROUP, READER, ...) OPTION_##READER(TYPE, field)
#include "base/options.def"
#undef OPT
#undef OPTION_LEARNER
#undef OPTION_NET
#undef OPTION_OPTIM
#undef OPTION_LOOP
#undef OPTION_CHAIN
#undef OPTION_NONE
