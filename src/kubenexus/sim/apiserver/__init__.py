"""An API server in the box: what schedulers, controllers and kubectl use of a real one, in memory.

    store       objects as bytes, versions, the log of changes, who watches      (no HTTP, no clock)
    kinds       what there is: names, verbs, columns, shapes                     (data, recorded from a real server)
    rules       what becomes of an object of a kind: defaults, admission, checks (pure functions over dicts)
    verbs       create, get, list, update, patch, delete: an object or a Refusal
    server      a Request in, an Answer out; discovery, schemas, tables
    listening   sockets

Everything up to `server` is synchronous and takes its clock and its chance from outside, so that the same code runs
behind a socket and in virtual time. `tests/contract` holds it to what a real kube-apiserver answers.
"""
