-- How many have answered, and their mean rating
SELECT count(*) AS answers, round(avg(rating), 1) AS mean FROM answers
