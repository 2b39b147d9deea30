package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// anthropicAPI is POST /v1/messages, streaming or not.
type anthropicAPI struct{}

func (anthropicAPI) parse(body []byte) (Request, error) {
	var in struct {
		Model    string
		System   json.RawMessage
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Provider: Anthropic, Model: in.Model}
	r.System, _ = textOf(in.System, "text")
	for _, message := range in.Messages {
		if message.Role == "system" {
			text, _ := textOf(message.Content, "text")
			r.System += "\n" + text
			continue
		}
		r.Messages = append(r.Messages, anthropicMessages(message.Role, message.Content)...)
	}
	for _, tool := range in.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r, nil
}

// anthropicMessages splits one message where a tool's result is followed by what
// the user wrote next: claude sends both in one. A reminder that claude itself
// adds to a result is no new message.
func anthropicMessages(role string, content json.RawMessage) []Message {
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		text, _ := textOf(content, "text")
		return []Message{{Role: role, Text: text}}
	}
	var messages []Message
	for _, part := range parts {
		text, result := textOf(json.RawMessage("["+string(part)+"]"), "text")
		last := len(messages) - 1
		switch {
		case last < 0, result != messages[last].Result && !strings.HasPrefix(text, "<system-reminder>"):
			messages = append(messages, Message{Role: role, Text: text, Result: result})
		case text != "":
			messages[last].Text = strings.TrimPrefix(messages[last].Text+"\n"+text, "\n")
		}
	}
	return messages
}

func (anthropicAPI) write(w http.ResponseWriter, a answer) {
	e := newEvents(w)
	id := fmt.Sprintf("msg_mock%d", a.serial)
	e.send("message_start", object{"type": "message_start", "message": object{
		"id": id, "type": "message", "role": "assistant", "model": a.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 11, "output_tokens": 1}}})
	reason := "end_turn"
	if a.tool != "" {
		reason = "tool_use"
		e.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{
			"type": "tool_use", "id": fmt.Sprintf("toolu_mock%d", a.serial), "name": a.tool, "input": object{}}})
		e.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{
			"type": "input_json_delta", "partial_json": a.args}})
	} else {
		e.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}})
		e.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": a.text}})
	}
	if a.hold != nil {
		a.hold()
	}
	e.send("content_block_stop", object{"type": "content_block_stop", "index": 0})
	e.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": 7}})
	e.send("message_stop", object{"type": "message_stop"})
}

func (anthropicAPI) fail(w http.ResponseWriter, status int, text string) {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error"}[status]
	if kind == "" {
		kind = "api_error"
	}
	writeJSON(w, status, object{"type": "error", "error": object{"type": kind, "message": text}})
}

// responsesAPI is OpenAI's POST /v1/responses, streaming.
type responsesAPI struct{}

func (responsesAPI) parse(body []byte) (Request, error) {
	var in struct {
		Model        string
		Instructions string
		Input        []struct {
			Type    string
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Type, Name string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Provider: Responses, Model: in.Model, System: in.Instructions}
	for _, item := range in.Input {
		text, _ := textOf(item.Content, "text")
		switch {
		case item.Role == "developer" || item.Role == "system":
			r.System += "\n" + text
		case item.Type == "message" || item.Type == "" && item.Role != "":
			r.Messages = append(r.Messages, Message{Role: item.Role, Text: text})
		case item.Type == "function_call" || item.Type == "custom_tool_call":
			r.Messages = append(r.Messages, Message{Role: "assistant"})
		case item.Type == "function_call_output" || item.Type == "custom_tool_call_output":
			r.Messages = append(r.Messages, Message{Role: "user", Result: true})
		}
	}
	for _, tool := range in.Tools {
		name := tool.Name
		if name == "" {
			name = tool.Type
		}
		r.Tools = append(r.Tools, name)
	}
	return r, nil
}

func (responsesAPI) write(w http.ResponseWriter, a answer) {
	e := newEvents(w)
	response := object{"id": fmt.Sprintf("resp_mock%d", a.serial), "object": "response", "model": a.model, "status": "in_progress", "output": []any{}}
	e.send("response.created", object{"type": "response.created", "response": response})
	var item object
	if a.tool != "" {
		item = object{"type": "function_call", "id": fmt.Sprintf("fc_mock%d", a.serial), "call_id": fmt.Sprintf("call_mock%d", a.serial),
			"name": a.tool, "arguments": a.args, "status": "completed"}
		e.send("response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	} else {
		id := fmt.Sprintf("item_mock%d", a.serial)
		item = object{"type": "message", "id": id, "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}}}
		e.send("response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": object{
			"type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": []any{}}})
		e.send("response.output_text.delta", object{"type": "response.output_text.delta", "item_id": id, "output_index": 0, "content_index": 0, "delta": a.text})
	}
	if a.hold != nil {
		a.hold()
	}
	e.send("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	response["status"], response["output"] = "completed", []any{item}
	response["usage"] = object{"input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
		"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0}}
	e.send("response.completed", object{"type": "response.completed", "response": response})
}

func (responsesAPI) fail(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, object{"error": object{"message": text, "type": "mock_error", "code": status}})
}

// chatAPI is OpenAI's POST /v1/chat/completions, streaming or not.
type chatAPI struct{}

func (chatAPI) parse(body []byte) (Request, error) {
	var in struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Provider: Chat, Model: in.Model}
	for _, message := range in.Messages {
		text, _ := textOf(message.Content, "text")
		switch message.Role {
		case "system", "developer":
			r.System += text + "\n"
		case "tool":
			r.Messages = append(r.Messages, Message{Role: "user", Result: true})
		default:
			r.Messages = append(r.Messages, Message{Role: message.Role, Text: text})
		}
	}
	for _, tool := range in.Tools {
		r.Tools = append(r.Tools, tool.Function.Name)
	}
	return r, nil
}

func (chatAPI) write(w http.ResponseWriter, a answer) {
	e := newEvents(w)
	chunk := func(delta object, finish any) {
		e.send("", object{"id": fmt.Sprintf("chatcmpl-mock%d", a.serial), "object": "chat.completion.chunk", "model": a.model,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	finish := "stop"
	if a.tool != "" {
		finish = "tool_calls"
		chunk(object{"role": "assistant", "tool_calls": []any{object{"index": 0, "id": fmt.Sprintf("call_mock%d", a.serial), "type": "function",
			"function": object{"name": a.tool, "arguments": a.args}}}}, nil)
	} else {
		chunk(object{"role": "assistant", "content": a.text}, nil)
	}
	if a.hold != nil {
		a.hold()
	}
	chunk(object{}, finish)
	e.send("", object{"id": fmt.Sprintf("chatcmpl-mock%d", a.serial), "object": "chat.completion.chunk", "model": a.model, "choices": []any{},
		"usage": object{"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (chatAPI) fail(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, object{"error": object{"message": text, "type": "mock_error", "code": status}})
}

// geminiAPI is Google's POST …:generateContent and …:streamGenerateContent.
type geminiAPI struct{ stream bool }

func (geminiAPI) parse(body []byte) (Request, error) {
	var in struct {
		SystemInstruction struct{ Parts json.RawMessage }
		Contents          []struct {
			Role  string
			Parts json.RawMessage
		}
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Provider: Gemini}
	r.System, _ = textOf(in.SystemInstruction.Parts, "text")
	for _, content := range in.Contents {
		text, result := textOf(content.Parts, "text")
		r.Messages = append(r.Messages, Message{Role: content.Role, Text: text, Result: result})
	}
	for _, tool := range in.Tools {
		for _, f := range tool.FunctionDeclarations {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	return r, nil
}

func (g geminiAPI) write(w http.ResponseWriter, a answer) {
	chunk := func(part object, finish string) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": []any{part}}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		return object{"candidates": []any{candidate}, "modelVersion": "mock",
			"usageMetadata": object{"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}}
	}
	part := object{"text": a.text}
	if a.tool != "" {
		part = object{"functionCall": object{"name": a.tool, "args": json.RawMessage(a.args)}}
	}
	if !g.stream {
		// The router asks for JSON in this form; everything else ignores it.
		if a.text == "A mock title" {
			part = object{"text": `{"reasoning":"mock","model_choice":"flash"}`}
		}
		if a.hold != nil {
			a.hold()
		}
		writeJSON(w, http.StatusOK, chunk(part, "STOP"))
		return
	}
	e := newEvents(w)
	if a.hold != nil {
		e.send("", chunk(part, ""))
		a.hold()
		part = object{"text": "."}
	}
	e.send("", chunk(part, "STOP"))
}

func (geminiAPI) fail(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, object{"error": object{"code": status, "message": text, "status": ""}})
}
