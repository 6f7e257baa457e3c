package overflow

import "strings"

// The words by which the form of an error is recognised, as they stand in a text prepared by formText. Many are the beginning of a word, and
// some of them are in other languages than English.

// inputFields are the fields of a request that may be too long, as errors name them. An error about another one is no overflow.
var inputFields = []string{"messages", "message", "prompt", "input", "inputs", "contents", "content", "text", "body", "model", "request", "query", "instances", "parameters"}

// preambles begin errors about any parameter.
var preambles = strings.NewReplacer("input should be", "", "input validation error", "", "invalid input", "", "extra input", "", "invalid prompt", "",
	"invalid token", "", "invalid message", "")

// tokenWords say that an error counts tokens, or is about the window.
var tokenWords = []string{"token", "context", "ctx", "kontext", "contesto", "令牌", "上下文", "トークン", "コンテキスト", "토큰", "컨텍스트", "токен", "контекст"}

// measuredWords are for what a limit on tokens applies to.
var measuredWords = []string{
	"prompt", "sequence", "seq len", "seqlen", "n ctx", "num ctx", "model len", "conversation", "history", "transcript", "input length", "input size",
	"input len", "length of input", "length of the input", "length of your input", "input ids", "position embedding", "提示", "输入长度", "プロンプト", "프롬프트", "промпт", "eingabe", "invite",
}

// sentWords are for what a client sends, which has other limits as well.
var sentWords = []string{"input", "message", "chat", "dialog", "输入", "消息", "对话", "入力", "メッセージ", "입력", "메시지", "ввод", "сообщени", "entrada", "entrée", "nachricht"}

// inputWords are for the input, apart from the window that it shares with the answer.
var inputWords = []string{"prompt", "input", "message", "conversation", "history", "输入", "提示", "入力"}

// outputWords are for the length of the answer.
var outputWords = []string{
	"max tokens", "max completion", "max output", "maximum output", "maximum completion", "max new", "maxtokens", "maxoutput", "maxcompletion", "maxnew", "output token", "completion", "new tokens",
	"num predict", "n predict", "max gen", "budget", "generated", "output length", "response length", "输出", "出力",
}

// excessWords say that something is too much.
var excessWords = []string{
	"too long", "too large", "too big", "too many", "toolong", "toolarge", "toomany", "too lengthy", "too much", "exceed", "longer than", "greater than",
	"larger than", "bigger than", "more than", "higher than", "over the", "over limit", "above the", "beyond", "not fit", "n't fit", "overflow", "overrun",
	"outofcontext", "out of context", "surpass", "oversize", "overlong", "outgrow", "grown past", "limit reached", " full", "lengtherror", "reduce the length", "reduce the size", "reduce your", "shorten", "no room", ">", "excede",
	"超过", "超出", "过长", "太长", "超限", "超长", "溢出", "超え", "超過", "長す", "초과", "너무", "превы", "слишком", "überschreit", "zu lang", "zu groß",
	"dépass", "trop long", "demasiad", "supera", "muito long", "ultrapass", "troppo",
}

// limitWords are for limits, which other errors mention as well.
var limitWords = []string{
	"max", "limit", "at most", "up to", "less than", "fewer than", "reduce", "only support", "capacity", "<", "allowed", "not enough",
	"insufficient", "最大", "上限", "限制", "最多", "최대", "максим", "лимит", "grenze", "höchst", "límite", "máxim", "massim",
}

// parameterErrors are the words of errors about the presence or the form of a parameter.
var parameterErrors = []string{
	"unsupported", "unknown", "unrecognized", "unexpected", "not supported", "not support", "not permitted", "not allowed", "required", "missing",
	"must be a", "invalid type", "invalid value", "deprecated", "at least", "below minimum", "不支持",
}

// otherErrors are the words of errors about something else, whatever else they say.
var otherErrors = []string{
	"per min", "per hour", "per day", "per second", "per month", "/min", "/day", "daily", "monthly", "hourly", "(tpm)", "(rpm)", "billing", "balance", "credit", "concurren",
	"too many request", "timeout", "timed out", "deadline", "policy", "safety", "moderation", "flagged", "filter", "authenti", "authoriz", "api key", "access token",
	"auth token", "bearer", "expired", "not found", "does not exist", "unexpected token", "json", "logit", "logprob", "special token", "stop sequence",
	"stop words", "'stop'", "top p", "top k", "temperature", "penalty", "cache control", "cache key", "prompt cache", "context management", "grammar", "service tier", "session token", "role", "alternat", "nested", "nesting", "depth",
	"每分钟", "频率", "速率", "额度", "配额", "余额", "限流", "并发",
}

// otherUnits are for sizes that are not in tokens.
var otherUnits = []string{
	"byte", " kb", " mb", " gb", "0kb", "0mb", "5mb", "2mb", "kib", "mib", "character", " chars", "image", "audio", "video", "picture", " file", "attachment",
	" page", "pdf", " frame", "string", "array", "list ", "字节", "字符", "图片", "图像", "文字",
}

// otherParts are for parts of a request that have limits of their own.
var otherParts = []string{" tool", "'tool", "tools", "function", " name", "'name", " id", "schema", "metadata", "description", "enum", "label"}
