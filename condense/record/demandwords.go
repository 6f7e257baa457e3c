package record

import (
	"strings"
	"unicode"
)

// Words that make a sentence a demand, surrounded by spaces: English, German, French, Spanish, Portuguese, Italian,
// Dutch, Polish, Russian. Strong ones say that something has to be, or must not.
var (
	strongWords = []string{
		" must ", " mustn't ", " never ", " do not ", " don't ", " dont ", " may not ", " shall ", " should not ",
		" shouldn't ", " always ", " forbidden ", " prohibited ", " not allowed ", " under no circumstances ",
		" avoid ", " no longer ",
		" muss ", " müssen ", " musst ", " darf ", " dürfen ", " nie ", " niemals ", " immer ", " kein ", " keine ", " keinen ",
		" verboten ", " nur ",
		" doit ", " doivent ", " jamais ", " toujours ", " il faut ", " aucun ", " aucune ", " interdit ", " seulement ", " uniquement ",

		" debe ", " deben ", " nunca ", " jamás ", " siempre ", " no uses ", " no toques ", " prohibido ", " sólo ", " solamente ",
		" deve ", " devem ", " sempre ", " proibido ", " apenas ", " somente ",
		" devono ", " vietato ", " soltanto ",
		" moet ", " moeten ", " nooit ", " altijd ", " geen ", " alleen ",
		" musi ", " nigdy ", " zawsze ", " nie wolno ", " tylko ",
		" должен ", " должна ", " должно ", " должны ", " никогда ", " всегда ", " нельзя ", " запрещено ", " только ", " обязательно ",
	}
	weakWords = []string{
		" keep ", " ensure ", " make sure ", " be sure ", " need to ", " needs to ", " have to ", " has to ", " should ", " prefer ",
		" instead of ", " rather than ", " stick to ", " leave ", " at most ", " at least ", " exactly ", " no more than ", " remember ",
		" important ", " constraint ", " limit ", " required ", " requirement ", " only ", " cannot ", " can't ", " without ",
		" nicht ", " ohne ", " pas ", " sans ", " sin ", " solo ", " não ", " sem ", " mai ", " senza ", " niet ", " не ",
		" stelle sicher ", " stell sicher ", " soll ", " sollen ", " sollte ", " behalte ", " achte ", " bitte ", " höchstens ", " mindestens ",
		" assure-toi ", " assurez-vous ", " garde ", " au plus ", " au moins ",
		" asegúrate ", " mantén ", " hay que ", " como máximo ", " al menos ",
		" certifique-se ", " mantenha ", " no máximo ", " pelo menos ",
		" assicurati ", " mantieni ", " al massimo ", " almeno ",
		" zorg ", " behoud ", " upewnij ", " убедись ", " убедитесь ", " сохрани ", " нужно ", " надо ",
	}
	// Scripts without spaces between words: Chinese, Japanese; and Korean, whose words have endings.
	strongScript = []string{
		"必须", "不要", "不得", "禁止", "不能", "切勿", "不可", "绝不", "始终", "总是", "只能", "务必", "必須", "不准", "別", "别", "勿",
		"必ず", "絶対", "しないで", "ないでください", "してはいけ", "てはならない", "常に", "のみ", "だけ",
		"반드시", "절대", "하지 마", "하지마", "않도록", "금지", "항상", "만 사용",
	}
	weakScript = []string{"请", "确保", "应该", "保持", "最多", "至少", "てください", "こと。", "確認", "해주세요", "하세요", "유지"}
)

// told are the words of somebody who tells of themselves, and demands nothing.
var told = strings.NewReplacer(" i don't ", " ", " i dont ", " ", " i do not ", " ", " we don't ", " ", " we do not ", " ", " i can't ", " ",
	" i cannot ", " ", " they don't ", " ", " it doesn't ", " ")

// demanding reports whether a sentence demands something.
func demanding(sentence string) (strong, weak bool) {
	spaced := " " + strings.Join(strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(sentence, "’", "'")), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",.;:!?()[]\"*`_«»“”¡¿", r)
	}), " ") + " "
	spaced = told.Replace(spaced)
	if containsAny(spaced, strongWords) || containsAny(sentence, strongScript) {
		return true, true
	}
	return false, containsAny(spaced, weakWords) || containsAny(sentence, weakScript)
}
