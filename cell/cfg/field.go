package cfg

import (
	"reflect"
	"strings"
)

// field is a key of a section.
type field struct {
	index int
	name  string // "" holds every key that no other field takes
	tag   reflect.StructTag
}

// fieldsOf lists the keys of a section's type, in their order.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
		if name == "" && option != "rest" {
			continue
		}
		fields = append(fields, field{i, name, t.Field(i).Tag})
	}
	return fields
}

// fieldFor returns the field that takes a key.
func fieldFor(fields []field, name string) (field, bool) {
	var rest field
	var found bool
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
		if f.name == "" {
			rest, found = f, true
		}
	}
	return rest, found
}

func hasNoMeaning(tag reflect.StructTag) bool { return tag.Get("meaning") == "none" }
