"""What is printed of a quote: price and noise of a run, what to expect, and what it would ask."""

from typing import TYPE_CHECKING

from secretballot.cli.outcome import print_json, say

if TYPE_CHECKING:
    from secretballot.runs.account import AccountState
    from secretballot.runs.method import Quote


def print_quote(quote: "Quote", why: str, *, as_json: bool) -> None:
    """Print what a run would cost and ask; nothing was made, trained or spent."""
    if as_json:
        print_json({**quote.to_json(), "method_reason": why})
        return
    say(f"method     {quote.method}: {quote.released} ({why})")
    say(f"price      epsilon {quote.epsilon:g}, delta {quote.delta:g}, under {quote.relation}")
    if quote.noise:
        say(f"noise      {quote.noise}")
    for sentence in quote.expect:
        say(f"expect     {sentence}")
    if quote.can_be_planned:
        say("forecast   secretballot plan --n-records N --like TABLE forecasts the accuracy")
    if quote.account is not None:
        say(f"account    {_account_text(quote.account)}")
    for caution in quote.cautions:
        # what follows from private records is for the curator, and says so
        who = "curator only, " if caution.private else ""
        answer = "--total E,D" if caution.name == "total" else f"--confirm {caution.name}"
        say(f"would ask  {who}{caution.text} [{answer}]")
    say("spent      nothing")


def _account_text(account: "AccountState") -> str:
    place = str(account.path)
    if account.own:
        return f"{place}: of this run alone, counting no other release"
    if account.budget is None or account.left is None:
        return f"{place}: would be opened"
    verdict = "" if account.admits else "; the run would be refused"
    left = f"epsilon {account.left.epsilon:g} and delta {account.left.delta:g}"
    of = f"epsilon {account.budget.epsilon:g} and delta {account.budget.delta:g}"
    return f"{place}: {left} left of {of}, {account.releases} releases before{verdict}"
