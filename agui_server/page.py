"""The page at `/`: what runs here, and how to talk to it."""

from html import escape


def page(address: str) -> str:
    """Return the page of a server that answers at an address such as `http://127.0.0.1:8000`."""
    return _PAGE.replace("{address}", escape(address))


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agui-server</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.5 system-ui, sans-serif }
  body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem }
  pre { padding: 1rem; overflow-x: auto; border: 1px solid #8884; border-radius: .5rem }
  code { font-size: .9em }
</style>
<h1>agui-server is running</h1>
<p>Three agents answer here, offline, with a scripted model:</p>
<ul>
  <li><code>assistant</code> tells the weather and the time.</li>
  <li><code>mailer</code> asks a person before it sends an email; its worker owns the tool.</li>
  <li><code>operator</code> asks, too; the engine runs the tool.</li>
</ul>
<p>Talk to one of them:</p>
<pre>curl -N {address}/api/channels/ag-ui/agents/mailer/run \\
  -H 'Content-Type: application/json' \\
  -d '{"threadId": "t1", "runId": "r1", "messages": [
       {"id": "m1", "role": "user", "content": "email ada about lunch"}]}'</pre>
<p>The stream ends with a question. Answer it, now or after a restart, with its id:</p>
<pre>curl -N {address}/api/channels/ag-ui/agents/mailer/run \\
  -H 'Content-Type: application/json' \\
  -d '{"threadId": "t1", "runId": "r2", "messages": [], "resume": [
       {"interruptId": "int-…", "status": "resolved",
        "payload": {"approved": true}}]}'</pre>
</html>
"""
