package condense

import (
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// WithoutFiles returns a job that shows old messages without their images and files, for a request of size bytes that is too large for upstream
// in bytes, images or pages. The oldest go first, until the request has half of its bytes and half of its images and files, so that there is room
// for more. Messages that no model has answered yet keep theirs. WithoutFiles returns nil if none can go.
func WithoutFiles(in Input, size int) Job {
	count := 0
	for i := range in.View.Items {
		if attached(in.View, &in.View.Items[i]) {
			count++
		}
	}
	bytes, files := size, count
	found := trims(in, 0, func(item session.Item) (session.Trim, bool) {
		done := bytes <= size/2 && files <= count/2
		if done || !attached(in.View, &item) || item.Index >= firstUnanswered(in.View.History) || lasts(in.View, &item) {
			return session.Trim{}, false
		}
		content, err := in.Codec.Read(item.Raw)
		if err != nil {
			return session.Trim{}, false
		}
		raw, err := in.Codec.Rewrite(item.Raw, bare(content.Text, content))
		if err != nil || len(raw) >= len(item.Raw) {
			return session.Trim{}, false
		}
		bytes -= len(item.Raw) - len(raw)
		files--
		return session.Trim{Pos: in.View.History.Pos(item.Index), Head: session.Whole, Bare: true}, true
	})
	if len(found) == 0 {
		return nil
	}
	return &job{name: "without_files", due: Due{Need: Need{Reason: session.ReasonSize, Hard: true}}, cut: trimCut(in, found)}
}

// attached reports whether an item shows images or files as the client sent them.
func attached(v *session.View, item *session.Item) bool {
	return item.Index >= 0 && item.Kind != session.System && item.Trim == nil && item.Parts == nil && v.History.Messages[item.Index].Attached &&
		v.Verbatim(item)
}

// firstUnanswered returns the index of the first message behind the history's last answer.
func firstUnanswered(h *session.History) int {
	n := len(h.Messages)
	for n > 0 && !h.Messages[n-1].Kind.ByModel() {
		n--
	}
	return n
}

// bare returns the text of a message that is shown without its images and files.
func bare(text string, c session.Content) string {
	return record.Attached(text, c) + "\n[left out here: the request had become too large]"
}
