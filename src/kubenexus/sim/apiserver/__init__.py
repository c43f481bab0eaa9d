"""An API server in memory: what schedulers, controllers and kubectl use of a real one.

    store       objects as bytes, versions, the log of changes, watchers     (no HTTP, no clock)
    kinds       the served kinds: names, verbs, columns, schemas             (data, recorded from a real server)
    rules       defaults, admission and validation of each kind              (pure functions over dicts)
    verbs       create, get, list, update, patch, delete: an object or a StatusError
    server      from a Request to a Response; discovery, schemas, tables
    listening   sockets

Everything up to `server` is synchronous and takes its clock and random numbers from outside. The same code therefore
runs behind a socket and in virtual time. `tests/contract` compares its answers with those of a real kube-apiserver.
"""
