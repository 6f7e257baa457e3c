"""The compaction conformance kit, with a proxy's condensations as its compactor: each round the conversation goes on a little, is condensed
again, and what reached upstream of it is what the kit reads. Prints what was kept, as JSON.

    OPENAI_BASE_URL=... OPENAI_API_KEY=... python memory.py
"""

import json
from dataclasses import replace

from compaction_kit.canaries import seeded_canaries
from compaction_kit.compacted import CompactedContext
from compaction_kit.corpus import build_random_session
from compaction_kit.generated import build_generated_session
from compaction_kit.probes import BehaviorProbe, ExactUseProbe
from compaction_kit.runner import run_conformance
from compaction_kit.semantic_corpus import build_semantic_heldout_session, build_semantic_session
from compaction_kit.session import build_seeded_session
from openai import OpenAI

ROUNDS = 5
client = OpenAI()


class Proxy:
    """The whole conversation is sent each time, as agents do; the answer of the upstream is the conversation as it was forwarded."""

    name = "dewpoint"

    def __init__(self):
        self.messages = []

    def compact(self, turns, round_num=1, budget_chars=None):
        if round_num == 1:
            self.messages = [{"role": t.role, "content": t.text} for t in turns]
        for n in range(4):
            self.messages.append({"role": "user", "content": f"Go on with part {round_num}.{n}."})
            self.messages.append({"role": "assistant", "content": "Acknowledged. " + "Continuing with the plan of this part. " * 12})
        self.messages.append({"role": "user", "content": f"How far is part {round_num}?"})
        answer = client.chat.completions.create(model="gpt-4o", messages=self.messages, extra_headers={"X-Dewpoint-Condense": "now"})
        text = answer.choices[0].message.content
        self.messages.append({"role": "assistant", "content": "Done."})
        return CompactedContext(text=text, compactor_name=self.name, round_num=round_num)


def held(tokens, text):
    return all(t.lower() in text for t in tokens)


def told(session, statements):
    """The session with those statements told by the agent, as an answer, and not typed by the user."""
    turns = list(session.turns)
    for i, turn in enumerate(session.turns):
        if turn.text in statements:
            turns[i] = replace(turn, role="user", text="What holds so far?")
            turns[i + 1] = replace(turns[i + 1], text=turn.text)
    return replace(session, turns=tuple(turns))


def semantic(out, build, typed):
    """What is left, after the last round, of values that were updated and of pairs that look alike."""
    for seed in range(1, 5):
        session, canaries, meta = build(seed)
        if not typed:
            session = told(session, meta["initial_statements"].values())
        run = run_conformance(session, Proxy(), rounds=ROUNDS, canaries=canaries)
        text = run.rounds[-1].context.text.lower()
        by_id = {c.id: c for c in canaries}
        for name in meta["conflicts"]:
            c = by_id[name]
            newest, old = text.rfind(c.content.lower()), text.rfind(meta["initial_statements"][name].lower())
            out["updates"] += 1
            out["latest"] += held(c.required_tokens, text)
            out["after"] += newest > old
            out["old"] += any(t.lower() in text for t in c.superseded_tokens)
        for first, second in meta["distinct_pairs"]:
            out["pairs"] += 1
            out["both"] += held(by_id[first].required_tokens, text) and held(by_id[second].required_tokens, text)


def survives(corpus, run, canaries):
    """Counts what each probe finds after every round."""
    for r in run.rounds:
        for canary in canaries:
            for name, probe in ("rules", BehaviorProbe()), ("exact", ExactUseProbe()):
                corpus[name + "_asked"] += 1
                corpus[name] += probe.probe(canary, r.context.text).survived


def corpora(runs):
    """What survives of each corpus, and of the budgets that the kit sets, how many rounds keep them."""
    out = {}
    for name, build in ("randomized", build_random_session), ("generated", build_generated_session):
        out[name] = {"rules_asked": 0, "rules": 0, "exact_asked": 0, "exact": 0}
        for seed in range(1, 13):
            session, canaries = build(seed)
            survives(out[name], run_conformance(session, Proxy(), rounds=ROUNDS, canaries=canaries), canaries)
    out["seeded"] = {"rules_asked": 0, "rules": 0, "exact_asked": 0, "exact": 0}
    survives(out["seeded"], runs[0], seeded_canaries())
    for share in 0.1, 0.2, 0.3:
        run = run_conformance(build_seeded_session(), Proxy(), rounds=ROUNDS, budget_fraction=share)
        out[f"budget_{share:.0%}"] = {"rounds": len(run.rounds), "within": sum(r.within_budget for r in run.rounds)}
    return out


def types(run):
    """The least share kept of each type, in any round."""
    out = {}
    for r in run.rounds:
        for kind, share in r.survival_by_type.items():
            out[kind] = min(out.get(kind, 1), share)
    return out


def main():
    runs = [run_conformance(build_seeded_session(), Proxy(), rounds=ROUNDS)]
    for seed in range(1, 5):
        session, canaries = build_random_session(seed)
        runs.append(run_conformance(session, Proxy(), rounds=ROUNDS, canaries=canaries))
    survival = {}
    for run in runs:
        for kind, share in types(run).items():
            survival[kind] = min(survival.get(kind, 1), share)
    out = {"survival": survival, "corpora": corpora(runs)}
    for name, typed in ("typed", True), ("told", False):
        out[name] = {"updates": 0, "latest": 0, "after": 0, "old": 0, "pairs": 0, "both": 0}
        for build in (build_semantic_session, build_semantic_heldout_session):
            semantic(out[name], build, typed)
    print(json.dumps(out))


main()
