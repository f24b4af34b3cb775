// A function without a body, which another package provides, may only stand in a package that has a file of assembly.
