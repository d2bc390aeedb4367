"""What is promised: policies, certificates and what decided when, and alarms."""

from starlette.responses import RedirectResponse, Response

from farthing_gateway.admin.figures import week
from farthing_gateway.admin.overview import promise
from farthing_gateway.admin.view import View


async def certificates(view: View) -> Response:
    """Show what is promised, on what evidence, and until when."""
    gateway = view.pages.gateway
    kept = [promise(one) for one in await view.pages.watch.kept()]
    return view.show(
        "certificates.html",
        policies=gateway.chat.policies,
        kept=kept,
        log=await view.pages.watch.deployed(),
    )


async def policies(view: View) -> Response:
    """Show which requests are whose task, and who may answer them."""
    gateway = view.pages.gateway
    kinds = await view.pages.figures.kinds(week(view.now))
    sums = {
        name: (
            sum(one.requests for one in kinds if one.policy == name),
            sum(one.cost_nano for one in kinds if one.policy == name),
        )
        for name in gateway.chat.policies
    }
    return view.show("policies.html", policies=gateway.chat.policies, sums=sums)


async def alarms(view: View) -> Response:
    """Show what rang."""
    found = await view.pages.watch.alarms()
    return view.show("alarms.html", alarms=found)


async def close(view: View) -> Response:
    """Mark an alarm as seen to."""
    await view.pages.watch.close_alarm(view.form.get("id", ""), view.by.key.name)
    return RedirectResponse("/admin/alarms", 303)
