// The compiled part of Beast: every other file sees declarations only.
#include <boost/beast/src.hpp>
