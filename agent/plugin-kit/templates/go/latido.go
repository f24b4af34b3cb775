// Package latido is written by `latido plugin build`: answers of a plugin as Go's errors, and the collector's reins.
package latido

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	types "wit_component/latido_plugin_types"
)

// A collection reads the clock. It must not begin while the host puts arguments or answers into the plugin's memory, and
// Go allocates then: so it begins at the end of calls alone.
func init() { debug.SetGCPercent(-1) }

// How many bytes may be allocated until a call ends with a collection.
const garbageMax = 4 << 20

var live uint64

// Collect is called at the end of each call. A call that allocates a lot may call it on its way.
func Collect() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Uint64() > live+garbageMax {
		runtime.GC()
		metrics.Read(sample)
		live = sample[0].Value.Uint64()
	}
}

// Error is an answer to the agent that something could not be done.
type Error struct {
	answer types.PluginError
	words  string
}

// Error says it in words.
func (e *Error) Error() string { return e.words }

// InvalidConfig says that the settings are wrong: the agent does not call again until they change.
func InvalidConfig(format string, values ...any) error {
	words := fmt.Sprintf(format, values...)
	return &Error{types.MakePluginErrorInvalidConfig(words), words}
}

// RetryAfter asks to be called again, not before so many milliseconds have passed.
func RetryAfter(milliseconds uint64) error {
	return &Error{types.MakePluginErrorRetryAfter(milliseconds), "not now"}
}

// Retry asks to be called again when it suits.
func Retry(format string, values ...any) error {
	words := fmt.Sprintf(format, values...)
	return &Error{types.MakePluginErrorRetry(words), words}
}

// Permanent says that this can never be done.
func Permanent(format string, values ...any) error {
	words := fmt.Sprintf(format, values...)
	return &Error{types.MakePluginErrorPermanent(words), words}
}

// Denied says that a capability is needed that was not granted.
func Denied(format string, values ...any) error {
	words := fmt.Sprintf(format, values...)
	return &Error{types.MakePluginErrorDenied(words), words}
}

// Answer makes what a function returned an answer. Another error than those of this package answers `other`.
func Answer[T any](value T, err error) witTypes.Result[T, types.PluginError] {
	Collect()
	if err == nil {
		return witTypes.Ok[T, types.PluginError](value)
	}
	if own, is := err.(*Error); is {
		return witTypes.Err[T, types.PluginError](own.answer)
	}
	return witTypes.Err[T, types.PluginError](types.MakePluginErrorOther(err.Error()))
}

// Done makes what a function without a value returned an answer.
func Done(err error) witTypes.Result[witTypes.Unit, types.PluginError] {
	return Answer(witTypes.Unit{}, err)
}
