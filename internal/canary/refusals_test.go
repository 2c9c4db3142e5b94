package canary_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// refusal is a request that is refused for the value in it.
type refusal struct {
	method, path, body string
	headers            []string
	status             int
}

// refusals makes each 4xx of the API with a value in the offending place. No
// answer repeats it; only names of members and parameters come back.
func (w *world) refusals() {
	value, escaped := theRefused, url.QueryEscape(theRefused)
	operation := `{"upstream":"up","model":"m","input":{"prompt":"` + thePrompt + `"}`
	keyed := []string{"Idempotency-Key", theKey + "-refused"}
	post := func(status int, path, body string, headers ...string) refusal {
		return refusal{http.MethodPost, path, body, headers, status}
	}
	get := func(status int, path string) refusal { return refusal{http.MethodGet, path, "", nil, status} }
	all := []refusal{
		// Bodies.
		post(400, "/v1/operations", operation+`,"`+value, keyed...),
		post(400, "/v1/operations", operation+`,"metadata":`+value+`}`, keyed...),
		post(400, "/v1/operations", operation+`,"metadata":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"metadata":["`+value+`"]}`, keyed...),
		post(400, "/v1/operations", operation+`,"`+theName+`":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":"`+value+`","owner":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":"`+value+`"}"`+value+`"`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":"`+value+"\xff"+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":["`+value+`"]}`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":"`+value+strings.Repeat("x", 300)+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"owner":"`+value+`\u0000"}`, keyed...),
		post(400, "/v1/operations", operation+`,"deadline":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"expected_cost":{"amount":"`+value+`","currency":"`+value+`"}}`, keyed...),
		post(400, "/v1/operations", operation+`,"expected_cost":{"amount":1,"currency":"`+value+`"}}`, keyed...),
		post(404, "/v1/operations", operation+`,"account":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"callback_url":"ftp://u:`+value+`@h.example/`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"callback_url":"`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"callback_url":"https://h.example/%zz`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"callback_url":"http://10.0.0.1/`+value+`?`+value+`"}`, keyed...),
		post(400, "/v1/operations", operation+`,"callback_url":"https://h.example/#`+value+`"}`, keyed...),
		post(422, "/v1/operations", strings.Replace(operation, `"up"`, `"`+value+`"`, 1)+`}`, keyed...),
		post(400, "/v1/operations", `{"upstream":"up","model":"m","input":"`+thePrompt+`"}`, keyed...),
		post(400, "/v1/operations", `"`+value+`"`, keyed...),
		post(413, "/v1/operations", `{"upstream":"up","model":"m","input":{"prompt":"`+thePrompt+strings.Repeat("x", 2<<20)+`"}}`, keyed...),
		post(413, "/v1/operations", operation+`,"metadata":{"a":"`+value+strings.Repeat("x", 17<<10)+`"}}`, keyed...),
		post(422, "/v1/operations", strings.Replace(operation, thePrompt, thePrompt+"!", 1)+`}`, "Idempotency-Key", theKey+"-up-read-ends"),
		post(402, "/v1/operations", operation+`,"expected_cost":{"amount":"100000","currency":"USD"},"metadata":{"a":"`+theMetadata+`"}}`, keyed...),
		post(422, "/v1/operations", operation+`,"expected_cost":{"amount":"1","currency":"EUR"},"metadata":{"a":"`+theMetadata+`"}}`, keyed...),
		// Headers.
		post(400, "/v1/operations", operation+`}`),
		post(400, "/v1/operations", operation+`}`, "Idempotency-Key", theKey+" \t"+theKey),
		post(400, "/v1/operations", operation+`}`, "Idempotency-Key", `"`+theKey),
		post(400, "/v1/operations", operation+`}`, "Idempotency-Key", theKey+strings.Repeat("x", 256)),
		post(409, "/v1/operations", operation+`}`, "Idempotency-Key", theKey+"-up-read-ends", "Authorization", "Bearer "+theAdminKey),
		post(415, "/v1/operations", operation+`}`, "Idempotency-Key", theKey, "Content-Type", value+"/x"),
		post(401, "/v1/operations", operation+`}`, "Authorization", "Bearer pawl_sk_"+value+value),
		post(401, "/v1/operations", operation+`}`, "Authorization", "Bearer "+theAdminKey[:len(theAdminKey)-1]+"x"),
		post(401, "/v1/operations", operation+`}`, "Authorization", "Basic "+value),
		post(401, "/v1/operations", operation+`}`, "Authorization", theAdminKey),
		post(403, "/v1/keys", `{"name":"`+value+`","scopes":["admin"]}`),
		// Paths and queries.
		get(404, "/v1/operations/"+value), get(404, "/v1/operations/op_"+value), get(404, "/v1/events/"+value), get(404, "/v1/"+value),
		get(404, "/v1/operations/"+value+"/timeline"), get(404, "/v1//operations/"+value), get(404, "/v1/operations/%2e%2e/"+value),
		get(404, "/"+value), get(404, "/v1/operations/"+value+"/"),
		get(400, "/v1/operations?state="+escaped), get(400, "/v1/operations?"+theName+"="+escaped), get(400, "/v1/operations?state=%zz"+escaped),
		get(400, "/v1/operations?upstream="+escaped+"&upstream="+escaped), get(400, "/v1/operations?page_size="+escaped),
		get(400, "/v1/operations?page_token="+escaped), get(400, "/v1/operations?idempotency_key="+escaped+"%01"), get(403, "/v1/operations?tenant="+escaped),
		get(400, "/v1/events?verdict="+escaped), get(400, "/v1/events?operation="+escaped), get(400, "/v1/deliveries?state="+escaped),
		get(400, "/v1/deliveries?endpoint="+escaped), get(400, "/v1/reviews?reason="+escaped), get(400, "/v1/endpoints?kind="+escaped),
		{http.MethodPut, "/v1/operations", value, nil, 405}, {theName, "/v1/operations", value, nil, 405},
	}
	for _, r := range all {
		w.refused(w.reader, r)
	}
	w.adminRefusals()
}

// adminRefusals are those that need more than the tenant's key may.
func (w *world) adminRefusals() {
	const value = theRefused
	list := items(w.call(theAdminKey, http.MethodGet, "/v1/endpoints", "/v1/endpoints?kind=webhook", nil))
	endpoint := "/v1/endpoints/" + fmt.Sprint(list[0]["id"])
	account := "/v1/accounts/" + fmt.Sprint(items(w.call(theAdminKey, http.MethodGet, "/v1/accounts", "/v1/accounts", nil))[0]["id"])
	operation := "/v1/operations/" + fmt.Sprint(items(w.call(theAdminKey, http.MethodGet, "/v1/operations", "/v1/operations?state=succeeded", nil))[0]["id"])
	open := "/v1/operations/" + fmt.Sprint(items(w.call(theAdminKey, http.MethodGet, "/v1/operations", "/v1/operations?state=unconfirmed", nil))[0]["id"])
	review := "/v1/reviews/" + fmt.Sprint(items(w.call(theAdminKey, http.MethodGet, "/v1/reviews", "/v1/reviews?open=true", nil))[0]["id"])
	for _, r := range []refusal{
		{http.MethodPost, "/v1/endpoints", `{"url":"https://h.example/` + theEndpointPath + `?` + theEndpointQuery + `","secret":"` + value + `"}`, nil, 400},
		{http.MethodPost, "/v1/endpoints", `{"url":"https://u:` + value + `@h.example/"}`, nil, 400},
		{http.MethodPost, "/v1/endpoints", `{"url":"http://169.254.169.254/` + theEndpointPath + `"}`, nil, 400},
		{http.MethodPost, "/v1/endpoints", `{"url":"https://h.example/","types":["operation.` + value + `"]}`, nil, 400},
		{http.MethodPost, "/v1/endpoints", `{"url":"https://h.example/","scheme":"` + value + `"}`, nil, 400},
		{http.MethodPost, "/v1/endpoints", `{"url":"https://h.example/","policy":{"timeout":"` + value + `","schedule":["` + value + `"]}}`, nil, 400},
		{http.MethodPatch, endpoint, `{"url":"ftp://h.example/` + theEndpointPath + `"}`, []string{"If-Match", `"1"`}, 400},
		{http.MethodPatch, endpoint, `{"owner":"` + value + `"}`, []string{"If-Match", `"` + value + `"`}, 412},
		{http.MethodPatch, endpoint, `{"owner":"` + value + `"}`, nil, 428},
		{http.MethodPost, endpoint + "/rotate-secret", `{"secret":"` + value + `"}`, []string{"If-Match", `"1"`}, 400},
		{http.MethodPost, endpoint + "/rotate-secret", `{"overlap":"` + value + `"}`, []string{"If-Match", `"1"`}, 400},
		{http.MethodPost, account + "/credit", `{"amount":"` + value + `"}`, []string{"Idempotency-Key", theKey}, 400},
		{http.MethodPost, open + "/resolve", `{"decision":"` + value + `"}`, nil, 400},
		{http.MethodPost, operation + "/resolve", `{"decision":"created","task_id":"` + value + `"}`, nil, 409},
		{http.MethodPost, operation + "/resolve", `{"decision":"` + value + `","from":"succeeded","note":"` + value + `"}`, nil, 400},
		{http.MethodPost, operation + "/resolve", `{"decision":"failed","from":"` + value + `","note":"` + value + `"}`, nil, 400},
		{http.MethodPost, operation + "/resolve", `{"decision":"succeeded","from":"succeeded","note":"` + value + `","charge":{"amount":"` + value + `","currency":"` + value + `"}}`, nil, 400},
		{http.MethodPost, operation + "/cancel", "", []string{"Idempotency-Key", `"` + value}, 400},
		{http.MethodPost, "/v1/accounts", `{"currency":"` + value + `"}`, nil, 400},
		{http.MethodPost, review + "/resolve", `{"decision":"` + value + `","note":"` + value + `"}`, nil, 400},
		{http.MethodPost, review + "/resolve", `{"decision":"` + value + `","operation_id":"` + value + `"}`, nil, 404},
		{http.MethodPost, "/v1/keys", `{"name":"x","scopes":["` + value + `"]}`, nil, 400},
		{http.MethodPost, "/v1/keys", `{"tenant":"` + value + ` !","scopes":["read"],"expires_at":"` + value + `"}`, nil, 400},
		{http.MethodGet, "/v1/operations?tenant=" + value + "&state=" + value, "", nil, 400},
	} {
		w.refused(theAdminKey, r)
	}
}

func (w *world) refused(key string, r refusal) {
	w.Helper()
	h := http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}}
	for i := 0; i < len(r.headers); i += 2 {
		h.Set(r.headers[i], r.headers[i+1])
	}
	got := w.ask(problems, r.method, w.node.APIURL()+r.path, []byte(r.body), h)
	if got.status != r.status {
		w.Errorf("%s %.80s %.120s: %d, want %d: %s", r.method, r.path, r.body, got.status, r.status, got.body)
	}
}

// wire sends what is no HTTP, or hardly; net/http answers and logs by itself.
func (w *world) wire() {
	const value = theRefused
	auth := "Authorization: Bearer " + w.reader + "\r\n"
	for _, text := range []string{
		value + "\r\n\r\n",
		"GET /v1/operations?x=" + value + " HTTP/9.9\r\n\r\n",
		"GET http://" + value + "@h.example/%zz" + value + " HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /hooks/up/" + value + " HTTP/1.1\r\nHost: h\r\n" + value + "\r\n\r\n",
		"GET /v1/operations HTTP/1.1\r\nHost: " + value + "/\x01\r\n" + auth + "\r\n",
		"GET /v1/operations HTTP/1.1\r\nHost: h\r\nX: " + value + "\x00\r\n" + auth + "\r\n",
		"GET /v1/operations HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat(value, 4000) + "\r\n" + auth + "\r\n",
		"POST /v1/operations HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: " + value + "\r\n" + auth + "\r\n",
		"POST /v1/operations HTTP/1.1\r\nHost: h\r\nContent-Length: " + value + "\r\n" + auth + "\r\n",
		"POST /v1/operations HTTP/1.1\r\nHost: h\r\nExpect: " + value + "\r\n" + auth + "\r\n",
		"POST /v1/operations HTTP/1.1\r\nHost: h\r\nIdempotency-Key: " + theKey + "\r\nTransfer-Encoding: chunked\r\n" + auth + "\r\n" + value + "\r\n",
		"POST /v1/operations HTTP/1.1\r\nHost: h\r\nIdempotency-Key: " + theKey + "\r\nContent-Length: 900\r\n" + auth + "\r\n{\"" + value,
		"\x16\x03\x01" + value,
	} {
		w.raw(strings.TrimPrefix(w.node.APIURL(), "http://"), text)
		w.raw(strings.TrimPrefix(w.node.AdminURL(), "http://"), text)
	}
}

// raw writes bytes, ends the stream and looks at all that comes back.
func (w *world) raw(address, text string) {
	w.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return // Answered and closed before all of it was written.
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(bufio.NewReader(conn))
	w.look(problems, string(answer))
}
