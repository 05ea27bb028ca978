"""Schedules that once broke a promise, as small as they could be made. Each says in a sentence what was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.sim.exploration.plan import load
from godwit.sim.exploration.trial import Trial

FAILURES = Path(__file__).parent / "failures"

CURED = {
    "ring-withdrawn-from-an-owner-in-doubt": "The owner of a cell had stood in for another one. A broker that had not"
    " heard of it withdrew what it wants while the other one was asked. An event was matched before it said it again.",
    "ring-cells-that-nobody-remembers": "All three members of a ring lost their disks, and the fourth had left. Nobody"
    " knew whose two of the cells had been, so that nobody matched there any more.",
    "ring-began-beside-a-cell-that-it-had-heard-of": "The first broker lost its disk. All whom it could reach were"
    " outside, so it began a ring, though it had heard of a cell: it had none, and did not ask to be let in any more.",
    "ring-began-again-while-the-other-was-down": "A broker lost its disk, and the only other member crashed before it"
    " had said anything. It began a ring at once, and a cell had two owners under the same term: neither gave way.",
    "ring-said-what-it-wants-before-it-knew-who-stands-in": "A broker came back, and said what it wants before it had"
    " heard who stands in for it. It did not say what it wants in its own cell, which is the other's now: what was"
    " published there next did not come to it.",
    "ring-replaced-and-did-not-hear-of-it": "A broker that was cut off replaced a holder of its book, which could not"
    " hear of it and stood in. The broker did not give way, so that a cell had two owners.",
    "ring-stood-in-before-what-it-had-sent": "A broker stood in for another and matched at once what came to it, while"
    " what it had sent to the other before was still under way: the earlier was retained in place of the later.",
    "ring-passed-before-it-heard-who-stands-in": "A broker that was cut off had matched something, and heard of who"
    " stands in for it behind a publisher's `Pass`. It answered at once, and what the other matched next came first.",
    "ring-claim-decided-while-another-session-waits": "A session came while another of the same client was claimed. The"
    " other went into it when that was decided, and nobody told the one that it need not remember any longer.",
    "dht-copy-without-a-line-of-its-own": "A broker could not write for seconds, and took up a copy that its source had"
    " dropped and given to another. The two met twice, and what a client had had in the copy came again.",
    "ring-own-publications-behind-what-it-had-matched": "A broker heard that another stands in for it while what its"
    " own client had published was still on its way. What the client published next went by the other, and came first.",
    "ring-second-ring-of-one-that-left": "A broker left the ring, lost its disk, began a ring of its own, and did not"
    " believe those who were in the older one.",
    "ring-left-with-its-last-cell": "A broker that left waited for ever for its holders: they had nothing to keep any"
    " more, and did not say so.",
    "ring-left-after-the-owner-agreed": "A session left the owner of a cell that was being divided, after the owner had"
    " agreed itself, and did not count the new owner among its sources.",
    "ring-book-replaced-by-a-replica": "Who stood in for a broker took what the replica said of others in place of what"
    " they had told it of its own cell.",
    "ring-holders-lost-their-disks": "Holders that had lost their disks were not sent the book again, so that nothing"
    " was granted any more.",
    "ring-told-of-an-old-cell": "A broker that had lost its disk was told of a cell of which it had given away a part,"
    " and did not believe the new owner of that.",
    "ring-older-session-of-who-started-alone": "A client started clean at a broker that was in no ring yet. When that"
    " became the client's home, the broker with the older session was not told, and kept it for ever.",
    "new-session-old-packet-ids": "A client that is told that its session is new begins its packet ids anew: what the"
    " broker remembered under the old ones made it drop what it had acknowledged.",
    "new-session-old-packet-ids-roaming": "The same for a client that roams on.",
    "answered-before-it-moved": "A copy had been taken up and used by its client, moved, and was then taken for one of"
    " which the client had had nothing.",
    "waited-for-the-newer": "A client waited for its session, was let into an older one that came first, and got from"
    " both what both had.",
    "awaited-by-its-moment": "Two sessions of a client began in the same millisecond at two brokers. One arrived, and"
    " was taken for the other, which was waited for. So what that had had already came again.",
    "gate-of-a-broker-nobody-could-ask": "A session came with word of a broker that lost its disk, to a broker that did"
    " not know that one yet. It was through before it could be asked to turn, and was waited for for ever.",
    "dht-a-home-since": "A broker was told of an older session before it knew that it is a home of the client. It"
    " handed that on to the homes, of which it was the only one by then, and the older session heard of no newer one.",
    "dht-began-before-it-was-restored": "A broker lost its disk, and a client began a session there before the broker"
    " was in the ring again. No home was told of it then, and the older session stayed where it was.",
    "dht-asked-for-and-refused-without-an-answer": "A broker with a copy asked for a session whose client objected. It"
    " was told where the session is, which is no answer, and its copy waited for one for ever.",
    "dht-copy-of-one-that-remembers": "A session that remembers was copied, and given while one broker had not turned"
    " to the copy. That turned as to a session that remembers nothing, which the copy did not take for its turn.",
    "dht-copy-turned-to-under-its-former-line": "A copy was taken up and remembered from then on. A broker turned to it"
    " as to what it had been before, which it did not take for its turn: all that came from there was kept back.",
    "dht-lost-the-disk-that-it-was-first-heard-from": "A broker was met, sent a session, and lost its disk before the"
    " other had noted which disk that was. So the other did not know of the loss, and waited for what was lost.",
    "dht-given-a-cell-before-it-had-turned": "A broker that could not be reached had not turned to a session that"
    " remembers when it got a cell. What it matched next was left to an older session, which had come long before.",
    "dht-came-to-whoever-gives-its-cell-away": "A session that remembers came to a broker which was giving half of its"
    " cell away. The heir was asked to turn to it only when it had the cell: what it matched first, nobody took.",
    "dht-took-its-new-session-for-the-lost-one": "A broker lost its disk. A client of it came without its token, got a"
    " new session and did not hear so. It came with its token, was told that its session is present, and subscribed to"
    " nothing.",
    "dht-subscribed-again-elsewhere": "A client gave up a subscription, moved, and took it up again. Who matches it had"
    " not been asked to turn, so what it had sent before came late to the new place, and the client had had it.",
    "dht-claimed-while-its-client-was-back": "Another broker had a newer session of a client, and claimed the one that"
    " the client was in. The client came back and kept it, and the two met: what it had had since then came again.",
    "dht-claim-decided-before-all-was-loaded": "A broker crashed while a session of it was claimed. When it was back"
    " the session went at once, and its will was said before it was known what other brokers want.",
    "dht-settled-while-it-was-claimed": "A client was let into a copy and into its session. Both were claimed, and"
    " heard their client first. The copy forgot meanwhile that it is one, since nobody had an older session: it went"
    " into the other with what that had given out.",
    "dht-presumed-where-a-clean-one-had-begun": "A client came with a token of a broker that held a copy of its"
    " session, so that the copy was presumed to be taken up. It was not: the client had started clean there, and that"
    " session had gone on. It was let into the older one.",
    "dht-said-before-what-came-with-a-cell": "A broker got a cell, and with it what another one wanted there, under the"
    " number of a statement. What the other had told the broker itself came later, with the same number, and was taken"
    " for old: what it wanted of the broker's own cell did not come to it.",
    "dht-left-as-a-cell-was-given-away": "A session left the owner of a cell in the turn in which that was given away."
    " The owner had not yet told the new one what it wants, and the session did not count that among its sources.",
    "dht-passed-before-what-waited": "A publication waited at the old owner of a cell, since the new one was down. The"
    " word that all has been passed on overtook it, and a later one was retained before it.",
    "dht-noted-to-one-that-had-restarted": "A broker had restarted, and another noticed it only when it next spoke."
    " What it said then and was not durable was given up: that a subscription is noted, for which its client waited.",
    "dht-newcomer-matched-before-what-it-had-sent": "A broker got a cell while publications that it had sent to the old"
    " owner were under way. It matched later ones at once: an earlier one was retained in place of a later one.",
    "dht-confirmed-a-copy-of-one-that-remembered": "A session that remembered was copied, and the copy taken up. When"
    " its source said that it is the session, it forgot what it has, and an older session brought that again.",
    "dht-nobody-beside-a-forgotten-cell-knew-of-a-lost-disk": "Brokers lost their disks one by one. Who lay beside a"
    " cell that nobody remembered had come in as a newcomer since. Only who knew of its lost disk took such a cell.",
    "dht-began-a-ring-beside-one-that-was-down": "A broker lost its disk while the only other member was down. It began"
    " a ring, in which a cell had the same term as the other's: neither gave way.",
    "dht-began-a-ring-among-others-without-disks": "A broker lost its disk and reached only others without theirs. It"
    " began a ring beside the one of which somebody else knew.",
    "dht-passed-on-by-two-brokers": "A broker got a cell back, and what it had sent to another came round by a third."
    " It matched at once only what came from the other itself, so that this waited behind what was published later.",
    "dht-two-claims-at-the-home": "A client started clean at two brokers, one after the other, while its home had its"
    " session and heard it first. When nobody came, the home noted both, and told the first of them nothing of the"
    " second: both sessions stayed.",
    "dht-copy-of-one-that-began-again": "A copy was taken up without a word of its source. The client went on in the"
    " session, which began anew since it was claimed. The copy went into it, and was not known as its copy any more.",
    "dht-copy-came-to-its-source": "A client was let in by a copy, had not heard so, and came back to its session. What"
    " began as the copy came to the broker that had made it, which turned to it, and away from the session. It wanted"
    " nothing any more, so that nobody took what was published next.",
    "dht-home-of-a-session-cut-off": "The only home of a client was the broker with its session, and both were cut off."
    " Who stood in as home said that there is no session. So the client began one that did not remember what it had,"
    " and got again what the older one had kept.",
    "begun-at-the-same-moment": "Two sessions of a client began in the same millisecond at two brokers, and a turn to"
    " the one was taken for a turn to the other.",
    "calendar-set-back": "A session that began where the calendar had been set back got an epoch that the older one"
    " reached by moving, so that the order of the two was lost.",
    "dht-older-session-at-a-broker-nobody-knew": "A session that waited for an older one went to a broker that had"
    " never heard of where that was. So it asked nobody there, and forgot what its client had before the older came.",
    "dht-newer-by-the-calendar": "A session that remembered what it had began where the calendar was behind. So it went"
    " into the one before it, which counted as newer, did not remember, and took once more what it had.",
    "copied-while-held-back": "A session was copied and given away while what an older one kept was held back in it.",
    "copy-without-word": "A client without a token was let into a copy while its session was elsewhere, and both used"
    " the same packet identifier.",
    "four-sessions": "What one session had was worked out from stream numbers of another that had gone into it.",
    "given-while-held-back": "The same as copied-while-held-back, after a full disk.",
    "copy-nobody-knew-of": "A client that had no answer was let into a copy at one broker and into the session at"
    " another, and the copy still had what the session had given it.",
    "forgotten-while-under-way": "What an older session had passed on was forgotten while the same was still under way"
    " from its broker.",
    "reserved-and-held": "A client was let into a copy at one broker while its session was reserved for another. The"
    " source gave the session to the one without asking the other, which let the client in too.",
    "lost-disk-new-session-unheard": "A client that had not heard that its session is new was told later that it is"
    " present, and did not subscribe.",
    "lost-disk-new-session-unheard-elsewhere": "The same at a broker that had never heard of the client.",
    "lost-disk-mark-unanswered": "A new session waited for ever for the answer of a broker that had lost its disk, and"
    " with it the question.",
    "lost-disk-retained": "What a broker had taken to be retained, and not told to all others, was never told to those"
    " once its disk was lost.",
    "lost-disk-retained-twice": "What was retained at a broker that had lost its disk was told to it by others, each of"
    " which took it for theirs: to the next broker that lost its disk nobody told it.",
    "lost-disk-shadow": "What a session had left behind waited for brokers to turn that had lost their disks.",
    "lost-disk-turn": "A session waited for the turn of a broker that had lost its disk, and its rows stayed.",
    "lost-disk-into-two-copies": "A client was let into two copies, and the one went into the other. Their source lost"
    " its disk and was asked to turn from the one only. The other waited for a turn of its own, and took none of it.",
    "lost-disk-two-copies": "A client was let into a copy, and went on to where another copy of its session was. The"
    " source lost its disk: what was in the other was kept back for the source's word, and the same loss confirmed the"
    " one, which forgot that it keeps something back.",
    "lost-disk-waited-for": "A broker lost its disk, and who waited for its turn or its session waited for ever.",
    "view-of-a-copy-never-heard-of": "A client was let into a copy, did not hear so, and was let into another. Both"
    " went on with the same view, and had other changes under the same numbers. When the two met, the client was sent"
    " those of the first under numbers that it had from the second.",
    "old-token-old-copy": "A client showed an old token where an outdated copy was, and the newer session went into"
    " that, with packet identifiers that the client knew.",
    "publisher-in-two-sessions": "A client published under the same packet identifier in two sessions that met, and"
    " what it published next was taken for a repetition.",
    "chain-of-new-sessions": "A session took what a very old one kept as soon as the one it had waited for in vain was"
    " there, though that one waited in vain for another, which had had it.",
    "let-in-without-knowing": "A client was let into a copy, had gone on before it heard so, and came back with the"
    " token of where it had been since: it was let into the copy again, which still had what it had taken there.",
    "lost-disk-copy-unannounced": "A session that was taken up out of a copy waited for the word of a broker that had"
    " lost its disk, and was never announced.",
    "lost-disk-confirmed-by-the-new-one": "What a new disk had confirmed was taken for what the lost one had, since"
    " confirmations did not say whose they are.",
    "subscribed-to-one-of-two": "A client that was told that its session is new had subscribed to one of two topics"
    " when the old session arrived; of the other it got nothing until it had asked for it, which is as it was told.",
    "will-and-clean-start-elsewhere": "The will of a client that started clean at another broker was not said.",
    "will-of-who-comes-back-at-once": "A broker came back after a crash, and a client that connected before it had said"
    " that client's will made it forget the will.",
    "will-of-a-subscriber-that-comes-back-at-once": "The same for a client that subscribes, heard at another broker.",
    "clean-at-two-brokers": "A client started clean at one broker, had no answer, and started clean at another: the"
    " first session ended the second, and the client was told that it is present, without what it had subscribed to.",
    "clean-at-two-brokers-calendar": "The same where the calendar of the first broker was ahead.",
    "clean-and-older-beside-it": "A client started clean while its older session was out of reach, and both went into a"
    " third: what the older had kept came too, though the client had had it in the clean one.",
    "gone-on-while-waited-for": "A client that had gone on unnoticed got a new session when its time of waiting was"
    " over, and that counted as newer than the one that the client had begun elsewhere meanwhile.",
    "subscribes-one-by-one": "A client that was told that its session is new had subscribed to one of two topics when"
    " the old session arrived, and of the other nobody collected until all brokers had heard of it.",
    "told-before-it-was-kept": "Clients of the simulator, unlike those of MQTT here, were told that their session is"
    " new before that was on the disk: after a crash the old one came, and knew their packet identifiers.",
    "older-copy-given-first": "A client came back with a newer token to a broker that still waited for its older"
    " session, was let into that, and got from both what both had.",
    "emptied-while-told-what-lasts": "What waited in a copy that its client had never heard of was dropped, and of what"
    " lasts the client was told the second change without the first.",
    "in-vain-and-still-collecting": "A copy that was taken up in vain gave way with nothing in it, and passed on what"
    " it went on to collect, which the client had had elsewhere.",
    "publisher-without-token": "A publisher without a token said something new at a broker that was cut off, under a"
    " packet identifier that had been unfinished in its older session there: it was taken for a repetition.",
    "identifier-finished-in-another-session": "A publisher without a token finished something in its older session, and"
    " said something new under the same packet identifier in the newer one, which had it unfinished: it was lost.",
    "wanted-elsewhere-when-its-broker-crashed": "A session was reserved for the holder of a copy, who was down, when a"
    " newer one began elsewhere. Its broker crashed, and asked the holder for nobody any more: the older stayed there.",
    "confirmed-while-brokers-turned": "A session out of a copy moved twice, and heard on its way that the copy was the"
    " session. From then on it had another line than that under which brokers turned to it, and waited for them.",
    "taken-up-before-its-source-crashed": "Two brokers took up copies whose source could not write. The source forgot"
    " in a crash that one of them had asked, and gave the session to the other: the first waited for its answer.",
    "asked-for-before-its-source-crashed": "A broker asked for a session of which it held a copy, while that was"
    " reserved for another. The source crashed, forgot who had asked, and gave it to the other: the copy stayed.",
    "old-token-told-new": "A client showed an old token where it had been let in since, and was told that its session"
    " is new: what the one had that it denied is not for it.",
    "sites-publisher-without-token": "A publisher without a token went back to a broker that was cut off, and repeated"
    " there, under a packet identifier of its older session, what that took for something else.",
    "sites-retained-first-wanted": "Who was the first of a site to want a topic got what was retained elsewhere as if"
    " it had just been published.",
    "sites-lost-disk-of-a-gateway-retained": "A gateway lost its disk with what it was to send on. Its site told it"
    " anew what is retained, and it told nobody else.",
    "sites-retained-at-the-same-moment": "Two sites retained something at the same moment, and each kept its own.",
    "sites-retained-older-comes-round": "Something older that was retained came round through a third site, and was"
    " shown to whoever had just been told of the newer.",
    "sites-older-comes-back-from-another-site": "A newer session had forgotten what it had when the older one, which"
    " was cut off on its way to another site, came back into it.",
    "sites-newer-while-the-older-is-on-its-way": "A client's older session was on its way from another site when its"
    " broker gave it a newer one. The gateway let the older one go back, and the newer waited for it for ever.",
    "sites-newer-unheard-of-and-older-used": "A newer session began of which its client never heard. The client had"
    " shown a newer token in the other site since, so the older one was not given, and the newer stayed for ever.",
    "sites-newer-unheard-of-and-the-older-taken": "A newer session began of which its client never heard. The client"
    " asked there for the older one, and was in that again in the other site before it came: nobody asked any more.",
    "sites-asked-a-gateway-that-had-asked-for-another": "A gateway asked for a session for another site, a broker asked"
    " the gateway for it, and its broker was cut off. The gateway made up a session that was to last no time at all.",
    "sites-copy-taken-up-when-the-older-arrives": "A copy was taken up at a gateway, and the client's older session"
    " came there from another site. The answers to the copy were then taken for those to another place.",
    "sites-copy-in-place-of-one-that-arrives": "A session was arriving from another site when its client came and"
    " showed the token of a newer one, of which there was a copy: that was put in the place of what was arriving.",
    "sites-two-copy-whose-original-crossed": "A client was let into a copy while its session went to another site. The"
    " holder of the copy was told so, did not take it for an answer, and waited for the original for ever.",
    "sites-two-handed-on-as-it-arrived": "A session came to a gateway, was handed on in the same turn to the broker"
    " that the gateway led to it, and the gateway went on as if it still had it.",
    "sites-two-sites-want-it": "Two gateways of a site each wanted the session for another site, and took it from one"
    " another for ever: neither had it long enough to send it.",
    "adhoc-calendar-set-back-in-the-first-minute": "A node of the air crashed in its first minute after its calendar"
    " was set back. Its clock for ages went back too, and it forgot what it had taken from the air.",
    "copy-moved-that-its-client-never-heard-of": "A client was let into a copy and never heard so. The copy moved to"
    " where the client was waiting for its session, which it had been in since, and the client was let into the copy.",
    "under-way-from-two-copies": "Two copies of a session were taken up. Of what a client had had in the one, the other"
    " took back what waited, but not what had a packet identifier already.",
    "will-numbered-alike-in-two-sessions": "Two sessions of a client began in the same microsecond at two brokers, and"
    " numbered their wills alike: who got both took the second for a repetition.",
    "under-way-when-its-original-comes": "A client was let into a copy and was being sent what the copy had. Its"
    " session came before the client had acknowledged anything, and brought the same once more.",
    "gave-way-and-was-the-session": "A copy was taken up, and its client, which had not heard so, began anew elsewhere."
    " The copy gave way with nothing in it, and was then given the session: what had waited in it was lost.",
    "gave-way-and-went-on-collecting": "The same for what was published until the source of the copy was back.",
    "sessions-that-pass-each-other": "A newer session went into an older one on its way, and nobody knew any longer"
    " what the newer had had.",
    "recalled-beside-an-older-session": "A client that was told that its session is new asked for the past again, and"
    " got beside it what the older session had read of the past.",
    "subscribed-to-the-past-before-a-crash": "A broker crashed just after it had granted a subscription to the past:"
    " the subscription was on its disk, and how far it had come was not.",
    "told-on-before-it-heard-that-it-is-in": "A client was let in, and told what is and what then replaced it before it"
    " had heard that it is in: the judge took all of that for history.",
    "let-in-and-told-without-hearing": "A broker with a full disk let a client in and told it what changed, and its"
    " answer never left. What was under way went along with the session: the judge took it for history.",
    "ring-replaced-while-its-matcher-was-away": "A broker of a ring acknowledged a publication while the broker that"
    " matches its topic was cut off, and told a client of the one before, which was still what is retained.",
    "copy-that-moved-on-gave-way": "A copy was taken up, moved on, and gave way with nothing in it. Then its source"
    " gave it the session, where it had been taken up: what had waited in it was lost.",
    "copy-that-moved-on-was-given": "The same where its source had given it the session before it gave way, and nobody"
    " had told so where it was.",
    "waited-for-one-that-had-left-from-there": "A session waited for one that might have had what an older one keeps,"
    " came itself to where that had been, and did not wait any longer, though the other had only gone on.",
    "waited-for-one-under-way-to-it": "The same where the other was under way to the very broker.",
    "clean-here-unheard-and-clean-elsewhere": "A client started clean at one broker, had no answer, started clean at"
    " another, came back without a token and was told that its session is new: the second ended the first, which had"
    " become the newer.",
    "without-token-to-the-older-of-two": "A client that had begun anew elsewhere came back without a token to its older"
    " session, and showed the token that it was given there. What it got then went into the newer one unnamed.",
    "without-token-and-clean-elsewhere": "The same where it had started clean elsewhere: its older session, with all"
    " that it had had there, ended when that was heard of.",
    "sites-two-passed-on-and-kept-back": "A session crossed while a second gateway acted. That brought an event to the"
    " old site, which passed it on, and the gateway that the session came to had kept back the same.",
    "sites-two-had-abroad-before-at-home": "A second gateway took an event to another site. A session brought it along"
    " from there to a broker that had not heard of the event yet, and got it once more.",
    "sites-two-had-at-home-and-brought-late": "A session had an event in its old site and crossed. A second gateway had"
    " taken the same event to the new site, where it came late and was not known as one that the session had had.",
    "sites-two-kept-back-and-refused-as-passed-on": "A second gateway brought an event of a third site to a session"
    " that was arriving. What its old site passed on was refused as the same, and what was kept back as passed on.",
    "sites-two-had-before-a-crash": "A broker crashed, and did not know any more that a session had had what a gateway"
    " had brought before: the session moved, and got it again by the other gateway.",
    "rate-counted-before-the-disk": "An interval of a rate began when a delivery was taken, and not when it left: one"
    " that had waited for the disk was followed too soon.",
    "in-a-copy-and-in-its-original": "A client was let into a copy, and with the same token into its original, which"
    " went into the copy when the two met. The copy gave it all again that it had had in the original since.",
    "in-a-copy-and-in-its-original-unannounced": "The same where nobody had heard of the copy yet. It also used packet"
    " identifiers that the client knew from the original.",
    "kept-back-and-taken-for-waiting": "A client asked for the past again while something of an older session was kept"
    " back. That counted as what waits, so that it was not read, and was dropped as what can be read.",
    "counted-anew-where-it-came": "A client without a token had something under way in its older session, which went"
    " into the newer. That moved, counted packets from 1 again, and so used an identifier that the client still had.",
    "copy-beside-one-that-its-original-went-into": "A client was let into a copy and never heard so. Its original, in"
    " which it went on, went into a third session; so did the copy, which gave it again what it had had there.",
    "taken-for-the-one-that-was-waited-for": "A session waited for another, whose broker could not write. An older one"
    " came first, under a higher epoch than the other had, and was taken for that: what the other had had came again.",
    "let-in-by-a-reservation-and-not-heard-of-it": "A client was let into a copy that was reserved for it, its broker"
    " crashed, and it came back with the token that it had shown before. That was taken as proof that it had been"
    " elsewhere since: the session that the source had given by then was thrown away.",
    "taken-back-and-then-given": "A client was let into a copy and never heard so, began anew elsewhere, and came back."
    " The copy was thrown away before its source had said anything, and then its source gave it the session.",
    "copy-under-way-to-a-new-disk": "A broker lost its disk while a copy was under way to it. The source dropped all"
    " copies but that one, since the lost disk held none, and the new disk held it for ever.",
    "two-sessions-begun-soon-after-a-third": "A client had just begun a session. It knocked at a broker, which did not"
    " know that it went on, and started clean at another: both sessions had one epoch, and the older won by its name.",
    "in-the-original-before-the-copy": "A client was let into its session at a broker that crashed before it could say"
    " so, and into a copy elsewhere. That was taken for left behind when the session came, and lost what waited.",
    "dht-two-who-pass-wait-for-each-other": "A cell went from its owner to one that stood in, and on to a broker that"
    " had sent publications to the owner. Its `Pass` waited at the owner for the owner's own, which waited at the new"
    " owner behind what that kept back until its `Pass` was answered: a minute long nothing was matched.",
    "dht-came-back-from-a-broker-nobody-had-met": "A client was in a newer session at a broker that nobody had met at"
    " the old one, and came back with a question mark. The older session began anew, and forgot at once what it had,"
    " since there was nobody to ask: what it had given out came again out of the newer.",
    "dht-two-who-pass-were-each-the-owner": "Two brokers had owned a cell one after the other, and each had sent the"
    " other publications for it. Both heard of a third owner, and the `Pass` of each waited at the other for that one's"
    " own: a minute long nothing was matched.",
    "sites-dht-knock-while-its-session-comes": "A client knocked at a gateway, which asked the homes where its session"
    " is. Meanwhile that came from the other site, for a broker where the client had knocked before. When the homes had"
    " answered, a new session took its place, and what it had was lost.",
    "sites-dht-older-word-of-a-gateway": "What a gateway had said of itself first was passed on by another broker, and"
    " came behind what it said next: nobody led to the other site. Clients that crossed got new sessions, and what they"
    " had came again.",
    "dht-given-back-half-of-its-cell": "A broker was about to cut its cell, and the holders of its book knew that it"
    " keeps less. An old knock of it came to one of them, who gave it back its half: it forgot the other, which was"
    " nobody's then.",
    "dht-told-of-a-cut-before-it-was-made": "A broker was about to cut its cell, and the holders of its book had heard"
    " so. One of them left, gave it the cell beside, and named the half that it was to keep as its own: it forgot the"
    " other half, which was nobody's then.",
    "dht-stood-in-for-half-of-a-cell": "A broker crashed just before it cut its cell, when the holders of its book knew"
    " that it keeps less. One of them stood in for the half that it was to keep. The broker did not believe that a"
    " part of its cell is another's, and nobody knew any more whose the other half was.",
    "copy-that-moved-beside-its-original": "A copy was taken up and moved on while its source was cut off. Brokers"
    " turned to it, and away from the session itself, in which its client was by then: what came next was lost.",
    "given-after-another-copy-went-into-it": "Two copies of a session were taken up, and one went into the other. Then"
    " the source said that the other is the session: that forgot what the first had brought, and kept it back.",
    "back-after-a-knock-without-answer": "A client knocked at a broker, had no answer, and went back to its older"
    " session at one that was cut off. The newer session got later what it had got there, and gave it out once more.",
    "begun-anew-as-it-came": "A client knocked at two brokers. The session that came to the first began anew as it"
    " came, and so counted as newer than the one at the second, where the client had been let in meanwhile.",
    "begun-anew-and-begun-at-one-moment": "A client knocked at two brokers at one moment. Its session began anew for"
    " one, moved, and so counted as newer than what the other had begun: the client was let into it in place of that.",
    "let-in-before-the-session-it-was-in-last": "Two sessions began at brokers that were cut off from one another, and"
    " the one that the client was in ranked as older, by a calendar that was behind. It left for the other, which came"
    " by then: the client was let into that at once, and got again what it had had.",
    "asked-again-while-the-disk-is-slow": "A client asked for the past again while something at QoS 0, read for its"
    " older session, waited for a slow disk: that came, and came again out of the archive.",
    "ring-gave-away-a-part-after-another-stood-in": "A broker that was cut off gave half of its cell away before it"
    " heard that another stands in for it. The holders of its book had confirmed that, though they knew that the cell"
    " was another's: it had two owners under one term, and neither gave way.",
    "ring-fenced-by-one-that-has-given-the-cell-back": "A holder crashed before its disk knew that the other one stands"
    " in, and heard so again only after that had given the cell back. It took nothing of the book ever after.",
    "dht-kept-by-a-broker-that-its-publisher-had-left": "A broker kept a publication since the one that matches it was"
    " down. The publisher moved to that one as it came back, and was heard there at once: what it had said before was"
    " matched after that, and was what is retained.",
    "dht-repeated-where-its-publisher-had-left": "A publisher moved, repeated something there, and went back. By then"
    " the other broker was out of reach, so it got a new session, and said something newer of the same topic. When the"
    " other was in reach again, what had been repeated there was matched last, and was retained.",
    "dht-given-a-cell-as-its-disk-was-lost": "A broker lost its disk while a cell was on its way to it. Whoever gave it"
    " that named its other cells, which it took for its own without asking anybody for what they had.",
    "dht-asked-nobody-what-its-lost-disk-had": "A broker lost its disk, and waited for its holder to say that it keeps"
    " the book. A holder says so only while all that it has sent is confirmed, and this one knocked all the time.",
    "dht-older-session-where-its-home-is-now": "A client started clean at a broker that was in no ring yet, and then"
    " at one that was. When the former became the client's home it noted where the newer session is, and kept its own.",
    "dht-took-its-copy-back-with-a-will": "A client was let into a copy and at once told that it is elsewhere. Nobody"
    " published its will, which asked for no delay.",
    "dht-turned-before-it-heard-who-stands-in": "A broker was stood in for, and had not heard of it. A session came to"
    " a third one, and it turned, though it had not been told what is wanted there: what it matched next was lost.",
    "dht-three-sessions-and-one-answer": "A client knocked at two brokers while its session was out of reach, and had"
    " an answer from one. At both a session began. What the three had had came in three parts, as it may; the judge"
    " counted those of which the client had heard.",
    "dht-let-into-a-copy-while-its-original-goes-round": "A client was let into two copies of its session, and what it"
    " got in the one that its source confirmed was in the other, too. That came as the newer: the client was let into"
    " it while its session went round to where the copy had come from.",
    "dht-new-session-where-nobody-knew-its-broker": "A client was let into a copy at a broker that crashed, and got a"
    " new session at one that had met nobody. The source of the copy came first with what the client had had in it: the"
    " broker that the client's token names was not waited for.",
    "met-after-a-clean-start": "A client started clean at a broker that had lost its disk. That got the older session"
    " before it had met a third broker again, and asked only those that it knew to turn: what stayed of the older one"
    " waited for the third for ever.",
    "met-after-a-clean-start-on-a-new-disk": "The same in a chain of three brokers, two of which had lost their disks:"
    " the one that its client started clean at had not met the fourth.",
    "answered-while-an-older-session-is-reserved": "A broker had reserved a session for another one, which was to say"
    " first whether it has let the client in. Meanwhile it told a newer session that it has no older one. That forgot"
    " what it had given out, got the older one after that, and gave it out again.",
    "ring-turned-by-an-owner-that-was-told-nothing": "A broker was away, and another stood in for it. A session came to"
    " a newcomer, which had never told the former what it wants. That came back, turned, and matched what was on its"
    " way to it, for the place where the session had been.",
    "ring-let-in-while-its-session-is-claimed": "A client started clean at another broker and came back with no token."
    " Its old broker had heard of that, and still let it into the older session, in which it subscribed: that was ended"
    " three seconds later, and nothing was subscribed to in the newer one.",
    "sites-ring-met-a-broker-of-another-site": "A session crossed to another site. Its gateway named the broker there"
    " to one of its own ring, as the one to which the session had gone. That took it for a broker of the ring, and kept"
    " for ever what it had to tell it.",
    "dht-known-copy-into-its-original": "A client was let into a copy, and with the same token into its original, to"
    " which it came back with the token of that. The original began anew when the copy was claimed, and the copy went"
    " into it: what the client had had in the original since came again.",
    "dht-clean-start-by-a-calendar-that-was-behind": "A client started clean at a broker that was cut off, and whose"
    " calendar was behind, so that its older session counted as the newer. The two met, neither remembered anything,"
    " and what waited in both came twice.",
    "dht-moved-while-its-client-subscribed": "A client that was told that its session is new had asked for the first of"
    " its topics when that went to another broker. That did not know that the client was still asking: what the older"
    " session wanted beside was wanted no longer when it went into the newer one.",
    "sites-dht-matched-while-its-session-cannot-leave-the-gateway": "A client had an event and crossed to a gateway,"
    " which had brought it there before: its matching broker was down. So the session could not leave the gateway yet,"
    " and the client got a new one elsewhere, which took the event when it was matched.",
    "sites-dht-brought-before-the-session-and-matched-after-it": "The same with the gateway cut off from the matching"
    " broker. The new session had to leave for the other site as soon as the older had gone into it.",
    "sites-dht-gateway-unknown-to-a-lost-disk": "A broker lost its disk, and its gateway did not tell it again that it"
    " is one. What its clients wanted was not told to the other site, and did not come from there.",
    "dht-told-nothing-before-it-went": "A client came without a token to a broker whose disk was full, and went before"
    " it could be told that its session is new. It came once more without a token, was told that its session is"
    " present, and subscribed to nothing.",
    "copied-as-its-original-came": "A client was let into a copy, and with the same token into its original. When that"
    " came to where the copy is, the broker ended the client's connection there, and copied the session before what"
    " the original has had was out of it. The client was let into such a copy, and got that again.",
    "gave-out-what-was-under-way-to-a-copy": "A client was let into a copy, and with the same token into its original,"
    " which gave out an event and came to where the copy is. The event was still under way to there from the broker"
    " that took it, for the copy, and came again.",
    "passed-on-to-a-copy-that-had-yielded": "The same where the copy had moved before its original came: what stayed"
    " of it passed on the event.",
    "let-in-while-the-holder-of-a-copy-is-asked": "A client was let into a copy and came back to where that was made,"
    " which was to hear first what the holder of the copy had to say. Meanwhile an older session came there: the client"
    " was let in at once, and got again what it had had in the copy.",
    "sites-under-way-to-an-older-session-that-came-back": "A client crossed to another site, and its session came back"
    " for a newer one, which had begun at the gateway meanwhile. An event of a broker that was cut off was under way to"
    " there: it was sent before the newer one began, and nobody had asked that broker to turn from the older.",
    "taken-from-each-other-without-end": "A client knocked at two brokers, of which one had not noticed that its"
    " connection was over, and showed each a token by which it was last at the other. Each of the two waited for the"
    " other's session and asked for it whenever it had gone there: it went to and fro without end.",
    "ring-replica-forgotten-while-another-stood-in": "A broker sent its book to a holder that took nothing from it,"
    " since another stood in for one of its cells. What the holder had was of that cell only, and was forgotten. It"
    " said nothing of this, and the broker waited for its word for ever: nothing was granted there any more.",
    "dht-newer-session-at-who-is-about-to-be-the-home": "A client started clean at a broker that had just come back. An"
    " older session of it was registered there, since the cell of its home was on its way to that broker, which did not"
    " know so yet. It passed the word on to whose the cell had been, and nobody told the older one of the newer.",
    "dht-clean-start-that-ended-by-a-calendar": "A client without a token started clean at a broker that could not"
    " write, and then at one whose calendar was behind, where it subscribed. That ended as the older. The client came"
    " to the other, was told that its session is present, and subscribed to nothing.",
    "dht-said-again-with-an-old-token-to-a-group": "A publisher said something for a group at a broker that was cut"
    " off, went before it was acknowledged, showed an older token to another one and said it again. Nobody there could"
    " know of the first, so it was published twice. The judge of groups forgave that for single clients only.",
    "dht-had-since-a-clean-start-by-another-calendar": "A client started clean and went on to a broker that was cut off"
    " and whose calendar was behind. What it had there came before the clean start by the calendars: when the two met,"
    " that was forgotten together with what waited, and came again out of the session that had been started clean.",
    "dht-came-to-one-that-had-answered": "A broker asked for a session that was out of reach, and gave its client a new"
    " one, which moved on. It told the new place that it has no older session, and got the one that it had asked for"
    " after that. Whoever had had it said that it has none any more. So the new place had heard all, forgot what it had"
    " given out, and got the older one then.",
}


@pytest.mark.parametrize("name", CURED)
def test_what_was_cured_stays_cured(name: str) -> None:
    assert Trial(load(FAILURES / f"{name}.json")).run().findings == []


def test_every_schedule_here_has_its_sentence() -> None:
    assert {path.stem for path in FAILURES.glob("*.json")} == CURED.keys()
