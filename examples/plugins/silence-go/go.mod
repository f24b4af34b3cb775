module plugin.latido/silence-go

go 1.25

require (
	go.bytecodealliance.org/pkg v0.2.3
	wit_component v0.0.0
)

replace (
	go.bytecodealliance.org/pkg => ./bindings/pkg
	wit_component => ./bindings
)
