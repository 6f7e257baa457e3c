package session

// Content is a message decoded. Only those who must read a message (a token count, a summary, excerpts, a trace) pay for
// decoding it; everything else works on the raw bytes.
type Content struct {
	Role      string
	Text      string // text parts, joined by a line feed
	Calls     []Call // the tool calls an assistant message makes
	Result    string // id of the call that a tool result answers
	Name      string // name of the tool or participant, where the message gives one
	Reasoning string // reasoning text that the client sends back
	Images    []Image
	Files     []File
}

// Call is one tool call of an assistant message. Arguments is the raw JSON text that the model wrote.
type Call struct {
	ID, Name, Arguments string
}

// File stands for a part that is neither text nor an image: a document, audio, video, or one that the dialect does not know.
type File struct {
	Kind    string // FileDocument, FileAudio, FileVideo, or what the part itself says
	Name    string // empty if it has none
	ID      string // under which upstream keeps it, empty if it has none
	Format  string // media type, or the end of its name, as "pdf"; empty if unknown
	Bytes   int    // size of inline data, 0 if it is elsewhere
	Seconds int    // about how long audio or video takes, 0 if unknown
}

// What files are.
const (
	FileDocument = "file"
	FileAudio    = "audio"
	FileVideo    = "video"
)

// Image stands for an image part. Width and Height are 0 where they are unknown (a URL); Bytes is the size of inline
// data.
type Image struct {
	Detail        string
	Width, Height int
	Bytes         int
}
