"""The pages for a browser: a Flask app of its own that asks the backend over HTTP.

It has no flights and no files of its own; of `backend` it imports the web server, the table of
settings and the errors, of `loadtests` the models. Every page works without JavaScript, loads
nothing from other hosts, and has an address that says what is on it:

    settings        where the frontend listens, and where the backend is
    backend_client  the only module that talks to the backend
    coverage        what the ledger covers, a few seconds old
    context         the backend, the coverage and the settings, for the pages of an application
    question        the question of a page as one value, from which all of it is made
    form_request    from a form to a question and its page, and from a refusal to a message
    filters         values as people read them
    airport_table   where airports are, and their time zones
    field_labels    the fields of a record, as they are hashed and as people read them; other texts
    twins           the `.csv` and `.json` twins of a page
    static_files    styles and scripts, at addresses that change with them
    bodies          how much may be posted to each page, and where it waits
    request_guard   refuses requests by their heads: those of other sites, and too long ones
    parameters      which parameters a page takes
    evidence        how what a page shows is proved and cited
    errors          the errors of the frontend
    path_prefix     pages below a path of another site
    app, site       make the application, and its lanes

The modules behind the pages, by kind:

    questions/      what several pages make of the answers to the three questions
    charts/         bars, lines and maps
    search/         what a text may mean
    adding/         from forms and files to the ledger
    lab/            results of the performance lab, and its models as a calculator
    pages/          one module for each kind of page: request in, backend asked, template out
"""
