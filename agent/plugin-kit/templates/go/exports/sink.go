// Package export_latido_plugin_sink is written by `latido plugin build`.
package export_latido_plugin_sink

import (
	plugin "author.example/plugin"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/latido"
	journal "wit_component/latido_plugin_journal"
	sink "wit_component/latido_plugin_sink"
	types "wit_component/latido_plugin_types"
)

func Write(batch journal.Batch) witTypes.Result[sink.Acknowledgement, types.PluginError] {
	return latido.Answer(plugin.Write(batch))
}

func Flush() witTypes.Result[witTypes.Unit, types.PluginError] {
	return latido.Done(plugin.Flush())
}
