module flexd

go 1.26

require (
	github.com/google/uuid v1.6.0
	pgregory.net/rapid v1.2.0
)
