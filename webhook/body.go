package webhook

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// taskID reads the task id at path from a body whose sender is not yet known. It
// must find what any later reader of the body will find, so it refuses whatever
// two JSON readers could understand differently: invalid UTF-8, a member of the
// path that occurs twice, or one beside it that differs in letter case only.
func taskID(body []byte, path []string) (string, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return "", refuse(ReasonMalformedBody, "the body is not JSON in UTF-8")
	}
	value := bytes.Trim(body, jsonSpace)
	for _, name := range path {
		var problem string
		if value, problem = member(value, name); problem != "" {
			return "", refuse(ReasonMalformedBody, problem)
		}
	}
	if value[0] != '"' {
		return "", refuse(ReasonMalformedBody, "member "+path[len(path)-1]+" is not a string")
	}
	id := string(unquote(value))
	if !visible(id) {
		return "", refuse(ReasonMalformedBody, "the task id is not 1 to 255 characters of visible ASCII")
	}
	return id, nil
}

const jsonSpace = " \t\r\n"

// member returns the value of the only member called name, or a problem. The
// object must be valid JSON without space around it.
func member(object []byte, name string) (value []byte, problem string) {
	if object[0] != '{' {
		return nil, "member " + name + " is not inside an object"
	}
	rest := skipSpace(object[1:])
	for rest[0] != '}' {
		end := valueEnd(rest)
		key := unquote(rest[:end])
		rest = skipSpace(skipSpace(rest[end:])[1:]) // the colon
		end = valueEnd(rest)
		if string(key) == name {
			if value != nil {
				return nil, "member " + name + " occurs twice"
			}
			value = rest[:end]
		} else if bytes.EqualFold(key, []byte(name)) {
			return nil, "member " + name + " occurs in another letter case"
		}
		rest = skipSpace(rest[end:])
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	if value == nil {
		return nil, "member " + name + " is missing"
	}
	return value, ""
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, jsonSpace) }

// valueEnd returns the length of the JSON value that b begins with.
func valueEnd(b []byte) int {
	switch b[0] {
	case '"':
		return stringEnd(b)
	case '{', '[':
		return nestedEnd(b)
	}
	if i := bytes.IndexAny(b, ",]}"+jsonSpace); i >= 0 {
		return i
	}
	return len(b)
}

func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

func nestedEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

func unquote(quoted []byte) []byte {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil // cannot happen: the body was validated
	}
	return []byte(s)
}
