package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var taskIDPath = []string{"data", "taskId"}

func TestTaskID(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"taskId":"job_9"}}`:                                                   "job_9",
		" {\n\t\"data\" : {\r\n \"taskId\" : \"job_9\" } } \n":                          "job_9",
		`{"a":"}","b":["data",{"data":{"taskId":"x"}}],"data":{"taskId":"j"}}`:          "j",
		`{"data":{"result":{"taskId":"x","data":{}},"taskId":"j","n":-1e5}}`:            "j",
		`{"taskId":"x","data":{"data":"x","taskId":"j"}}`:                               "j",
		`{"s":"\\\"}{","data":{"s":"\\","taskId":"j"},"n":1.5,"t":true,"z":null}`:       "j",
		`{"\u0064ata":{"task\u0049d":"\u006a"}}`:                                        "j",
		`{"data":{"taskId":"a.b/c:d"}}`:                                                 "a.b/c:d",
		`{"dat":1,"dataa":2,"":3,"data":{"taskId":"` + strings.Repeat("a", 255) + `"}}`: strings.Repeat("a", 255),
		`{"data":{"n":[],"o":{},"taskId":"j"},"last":0}`:                                "j",
	} {
		got, err := taskID([]byte(body), taskIDPath)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v", body, got, err)
		}
	}
}

func TestTaskIDRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                   ``,
		"not JSON":                `not json`,
		"cut":                     `{"data":{"taskId":"j"}`,
		"two values":              `{"data":{"taskId":"j"}} {}`,
		"byte order mark":         "\ufeff" + `{"data":{"taskId":"j"}}`,
		"invalid UTF-8 in a name": "{\"data\":{\"taskId\":\"j\"},\"da\xffta\":1}",
		"array":                   `[{"data":{"taskId":"j"}}]`,
		"string":                  `"data"`,
		"null":                    `null`,
		"no data":                 `{"taskId":"j"}`,
		"data is null":            `{"data":null}`,
		"data is a string":        `{"data":"{\"taskId\":\"j\"}"}`,
		"data is an array":        `{"data":[{"taskId":"j"}]}`,
		"no task id":              `{"data":{}}`,
		"task id is a number":     `{"data":{"taskId":9}}`,
		"task id is null":         `{"data":{"taskId":null}}`,
		"task id is empty":        `{"data":{"taskId":""}}`,
		"task id with a space":    `{"data":{"taskId":"a b"}}`,
		"task id with a newline":  `{"data":{"taskId":"a\nb"}}`,
		"task id not ASCII":       `{"data":{"taskId":"é"}}`,
		"task id too long":        `{"data":{"taskId":"` + strings.Repeat("a", 256) + `"}}`,
		"data twice":              `{"data":{"taskId":"j"},"data":{"taskId":"k"}}`,
		"data twice, same value":  `{"data":{"taskId":"j"},"data":{"taskId":"j"}}`,
		"data twice, null first":  `{"data":null,"data":{"taskId":"j"}}`,
		"task id twice":           `{"data":{"taskId":"j","taskId":"k"}}`,
		"task id twice, escaped":  `{"data":{"taskId":"j","task\u0049d":"k"}}`,
		"data twice, escaped":     `{"\u0064ata":{"taskId":"j"},"data":{"taskId":"k"}}`,
		"Data alone":              `{"Data":{"taskId":"j"}}`,
		"DATA beside data":        `{"data":{"taskId":"j"},"DATA":{"taskId":"k"}}`,
		"taskID alone":            `{"data":{"taskID":"j"}}`,
		"taskID beside taskId":    `{"data":{"taskID":"k","taskId":"j"}}`,
		"long s beside taskId":    `{"data":{"taſkId":"k","taskId":"j"}}`,
		"too deep":                strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000),
	} {
		if got, err := taskID([]byte(body), taskIDPath); !errors.Is(err, ReasonMalformedBody) || got != "" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// FuzzTaskID compares the scan with package encoding/json: what it accepts, the
// decoder reads in the same way, and it occurs once.
func FuzzTaskID(f *testing.F) {
	for _, seed := range []string{
		`{"data":{"taskId":"job_9"}}`, `{"\u0064ata":{"taskId":"j"},"data":1}`, `{"data":{"taskId":"j","TASKID":"k"}}`,
		` { "a" : [ { } , "}\"" ] , "data" : { "taskId" : "j" } } `, `{"data":[]}`, `{}`, `[`, `""`, `{"":{}}`, "\xff", `{"data":{"taskId":9}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := taskID(body, taskIDPath)
		want := decodedTaskIDs(body)
		if err != nil {
			if len(want) == 1 && visible(want[0]) && plainlyOnce(body) {
				t.Fatalf("refused %q: %v", body, err)
			}
			return
		}
		if len(want) != 1 || want[0] != got {
			t.Fatalf("%q: got %q, package json reads %q", body, got, want)
		}
	})
}

// plainlyOnce reports whether both names occur once in any spelling, so that there
// is no reason to refuse the body.
func plainlyOnce(body []byte) bool {
	lower := bytes.ToLower(body)
	return !bytes.ContainsFunc(body, func(r rune) bool { return r > '~' || r == '\\' }) &&
		bytes.Count(lower, []byte("data")) == 1 && bytes.Count(lower, []byte("taskid")) == 1
}

// decodedTaskIDs returns every string that data.taskId has, found token by token.
func decodedTaskIDs(body []byte) []string {
	var ids []string
	for _, data := range membersByToken(body, "data") {
		for _, raw := range membersByToken(data, "taskId") {
			var id *string
			if json.Unmarshal(raw, &id) == nil && id != nil {
				ids = append(ids, *id)
			}
		}
	}
	return ids
}

func membersByToken(object []byte, name string) (values []json.RawMessage) {
	if !json.Valid(object) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return nil
		}
		if key == name {
			values = append(values, raw)
		}
	}
	return values
}
