"""`kubenexus webhook`: reviews objects before the API server stores them.

    validation.validate(request, settings)                  refuses or warns: unreadable values, gangs too small
    mutation.mutate_gang(request)                           gang labels on the pods of a job, if the job asks for them
    mutation.mutate_scheduler_name(request, namespace)      the scheduler of the namespace
    mutation.mutate_gpu_class(request, namespace, settings) a preference for the GPUs of the tenant's tier

These are pure functions from a request to a `Response`. `server` has the HTTP side, `process` the certificates.
"""
