// Package wit_types has the types of the component model that Go lacks. Written by `latido plugin build`.
package wit_types

// Unit is the value of a result that has none.
type Unit struct{}

// The cases of an option, as bindings number them.
const (
	OptionNone uint8 = iota
	OptionSome
)

// The cases of a result, as bindings number them.
const (
	ResultOk uint8 = iota
	ResultErr
)

// Option is a value that may be missing.
type Option[T any] struct {
	value *T
}

// Some is an option that has this value.
func Some[T any](value T) Option[T] { return Option[T]{&value} }

// None is an option without a value.
func None[T any]() Option[T] { return Option[T]{} }

// IsSome tells whether there is a value.
func (o Option[T]) IsSome() bool { return o.value != nil }

// IsNone tells whether there is none.
func (o Option[T]) IsNone() bool { return o.value == nil }

// Some returns the value, and panics where there is none.
func (o Option[T]) Some() T {
	if o.value == nil {
		panic("an option without a value was asked for it")
	}
	return *o.value
}

// SomeOr returns the value, or the other one where there is none.
func (o Option[T]) SomeOr(other T) T {
	if o.value == nil {
		return other
	}
	return *o.value
}

// Tag is the number of the case.
func (o Option[T]) Tag() uint8 {
	if o.value == nil {
		return OptionNone
	}
	return OptionSome
}

// Result is a value, or an error in its place.
type Result[T, E any] struct {
	value  T
	wrong  E
	failed bool
}

// Ok is a result that has this value.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{value: value} }

// Err is a result that has this error.
func Err[T, E any](wrong E) Result[T, E] { return Result[T, E]{wrong: wrong, failed: true} }

// IsOk tells whether there is a value.
func (r Result[T, E]) IsOk() bool { return !r.failed }

// IsErr tells whether there is an error.
func (r Result[T, E]) IsErr() bool { return r.failed }

// Ok returns the value, and panics where there is an error.
func (r Result[T, E]) Ok() T {
	if r.failed {
		panic("a result that is an error was asked for its value")
	}
	return r.value
}

// Err returns the error, and panics where there is none.
func (r Result[T, E]) Err() E {
	if !r.failed {
		panic("a result that is a value was asked for its error")
	}
	return r.wrong
}

// Tag is the number of the case.
func (r Result[T, E]) Tag() uint8 {
	if r.failed {
		return ResultErr
	}
	return ResultOk
}
