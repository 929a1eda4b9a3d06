#pragma once

namespace qpn8::test {

/// How many times this process has taken memory from operator new. An executable that asks links
/// support/allocation_count.cpp, which replaces its allocator.
long allocation_count();

}  // namespace qpn8::test
