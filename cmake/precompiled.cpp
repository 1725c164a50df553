// The target that makes a precompiled header is this source and nothing else (precompiled.cmake).
int main() { return 0; }
